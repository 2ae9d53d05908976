// kinds.cpp: see kinds.h.
#include "format/kinds.h"

#include "format/records/call.h"
#include "format/records/code.h"
#include "format/records/counter.h"
#include "format/records/exception.h"
#include "format/records/frames.h"
#include "format/records/gc.h"
#include "format/records/handle.h"
#include "format/records/in_use.h"
#include "format/records/info.h"
#include "format/records/line_map.h"
#include "format/records/lost.h"
#include "format/records/mark.h"
#include "format/records/memory.h"
#include "format/records/native.h"
#include "format/records/pool.h"
#include "format/records/span.h"
#include "format/records/string.h"
#include "format/records/task.h"
#include "format/records/thread.h"
#include "format/records/thread_tags.h"

namespace whence::format {
namespace {

// clang-format off
constexpr std::array kAll = {
    &Return::kKind, &Unwind::kKind, &Yield::kKind,
    &CReturn::kKind, &CRaise::kKind, &Gone::kKind,
    &Unstarted::kKind, &Call::kKind, &Open::kKind,
    &GeneratorCall::kKind, &Resume::kKind, &Throw::kKind,
    &GeneratorOpen::kKind, &CCall::kKind, &Folded::kKind,
    &Raised::kKind, &Handled::kKind, &Frames::kKind,
    &ThreadFrames::kKind, &FrameGenerator::kKind, &ThreadGenerator::kKind,
    &CallsOn::kKind, &CallsOff::kKind, &Mark::kKind,
    &Counter::kKind, &RealCounter::kKind, &GcBegin::kKind,
    &GcEnd::kKind, &SpanBegin::kKind, &SpanEnd::kKind,
    &SpanError::kKind, &SpanEndAway::kKind, &SpanTags::kKind,
    &Thread::kKind, &ThreadName::kKind, &ThreadEnd::kKind,
    &Owner::kKind, &Task::kKind, &NumberedTask::kKind,
    &TaskName::kKind, &Awaits::kKind, &String::kKind,
    &StringPart::kKind, &Info::kKind, &Code::kKind,
    &Stack::kKind, &RawAllocated::kKind, &MemAllocated::kKind,
    &ObjAllocated::kKind, &MallocAllocated::kKind, &MmapAllocated::kKind,
    &RawMoved::kKind, &MemMoved::kKind, &ObjMoved::kKind,
    &MallocMoved::kKind, &MmapMoved::kKind, &Freed::kKind,
    &FreedAt::kKind, &Unmapped::kKind, &NotFreed::kKind, &OutOfMemory::kKind,
    &Resident::kKind, &MemoryOn::kKind, &MemoryOff::kKind,
    &MemoryState::kKind, &RawInUse::kKind, &MemInUse::kKind,
    &ObjInUse::kKind, &MallocInUse::kKind, &MmapInUse::kKind,
    &PoolAllocated::kKind, &PoolFreed::kKind, &SegmentAllocated::kKind,
    &SegmentFreed::kKind, &PoolName::kKind, &ThreadTags::kKind,
    &HandleTable::kKind, &WorkOn::kKind, &HandleEvent::kKind, &LineMap::kKind,
    &Module::kKind, &NativeStack::kKind, &PythonRun::kKind, &Symbol::kKind,
    &SymbolsAnew::kKind, &Lost::kKind,
};
// clang-format on

constexpr bool fits(const Kind& kind) noexcept {
  const std::size_t count = kind.count();
  for (std::size_t i = 0; i < count; ++i) {
    const bool last_of_body = shape_of(kind.code) == kBody && i == count - 1;
    if ((kind.fields[i].type == Field::bytes) != last_of_body) return false;
  }
  return shape_of(kind.code) == kBody ? count >= 1 : count == shape_of(kind.code);
}

constexpr bool all_are_sound() noexcept {
  std::array<bool, 256> seen{};
  for (const Kind* kind : kAll) {
    if (seen[kind->code] || !fits(*kind)) return false;  // a number twice, a wrong shape
    seen[kind->code] = true;
  }
  return true;
}
static_assert(all_are_sound());

// A time first, and nothing else that depends on what was before or on where the recording lies, or
// changes what comes after.
constexpr bool is_plain(const Kind& kind) noexcept {
  if (kind.code == SpanBegin::kKind.code || kind.code == Owner::kKind.code ||
      kind.code == ThreadTags::kKind.code) {
    return false;
  }
  if (shape_of(kind.code) == kBody || kind.fields[0].type != Field::time) return false;
  for (std::size_t i = 1; i < kind.count(); ++i) {
    switch (kind.fields[i].type) {
      case Field::number:
      case Field::duration:
      case Field::string:
      case Field::code:
      case Field::stack:
      case Field::reason: break;
      default: return false;
    }
  }
  return true;
}

constexpr std::array<KindInfo, 256> make_infos() noexcept {
  std::array<KindInfo, 256> infos{};
  for (const Kind* kind : kAll) infos[kind->code] = {kind, is_plain(*kind)};
  return infos;
}

}  // namespace

constinit const std::array<KindInfo, 256> kKinds = make_infos();

std::span<const Kind* const> all_kinds() noexcept {
  return kAll;
}

}  // namespace whence::format
