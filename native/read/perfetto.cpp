// perfetto.cpp: see perfetto.h. Field numbers are those of Perfetto's trace_packet.proto,
// track_event.proto, interned_data.proto and clock_snapshot.proto.
#include "read/perfetto.h"

#include <algorithm>

#include "base/text.h"
#include "read/protobuf.h"

namespace whence::read {
namespace {

enum Packet : std::uint32_t {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kDefaults = 59,
};
enum Defaults : std::uint32_t { kDefaultEvent = 11, kDefaultClock = 58 };
enum Event : std::uint32_t { kType = 9, kNameId = 10, kTrack = 11, kPlaceId = 34 };
enum Clock : std::uint32_t { kClock = 1, kClockId = 1, kClockTime = 2, kIsIncremental = 3 };
enum Interned : std::uint32_t { kName = 2, kPlace = 4, kId = 1, kText = 2 };
enum Place : std::uint32_t { kFile = 2, kLine = 4 };

constexpr std::uint32_t kTracePacket = 1;
constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2;
constexpr std::uint64_t kStateCleared = 1;
constexpr std::uint64_t kBootTime = 6, kOwnClock = 64;

}  // namespace

void PerfettoCalls::take(const CallStep& step) {
  const Call& call = step.call;
  Thread& thread = threads_[call.thread];
  const bool ends = step.what == CallStep::What::left;
  const std::int64_t now = start_ + call.start + (ends ? call.duration : 0);
  if (!thread.begun) begin_sequence(thread, call.thread, now);
  begin_packet(thread, call.thread, now);
  if (!ends) {
    const std::uint32_t function = functions_.of(call);
    const std::uint64_t id = function == Functions::kNone ? 1 : std::uint64_t{function} + 2;
    if (thread.known.size() < id) thread.known.resize(id, false);
    if (!thread.known[id - 1]) {
      thread.known[id - 1] = true;
      name_function(function);
    }
    append_number(part_, kType, kSliceBegin);
    append_number(part_, kNameId, id);
    append_number(part_, kPlaceId, id);
  } else {
    append_number(part_, kType, kSliceEnd);
  }
  end_packet();
  if (step.what != CallStep::What::folded) return;
  begin_packet(thread, call.thread, now + call.duration);
  append_number(part_, kType, kSliceEnd);
  end_packet();
}

void PerfettoCalls::begin_packet(Thread& thread, std::uint32_t id, std::int64_t now) {
  packet_.clear();
  part_.clear();
  const std::int64_t since = now > thread.now ? now - thread.now : 0;
  thread.now += since;
  append_number(packet_, kTimestamp, static_cast<std::uint64_t>(since));
  append_number(packet_, kSequence, first_sequence_ + id);
}

void PerfettoCalls::end_packet() {
  append_bytes(packet_, kTrackEvent, part_);
  append_bytes(out_, kTracePacket, packet_);
}

// The first packet of a sequence: its clock, and what all of its packets share.
void PerfettoCalls::begin_sequence(Thread& thread, std::uint32_t id, std::int64_t now) {
  thread.begun = true;
  thread.now = now;
  packet_.clear();
  part_.clear();
  for (const std::uint64_t clock : {kBootTime, kOwnClock}) {
    inner_.clear();
    append_number(inner_, kClockId, clock);
    append_number(inner_, kClockTime, static_cast<std::uint64_t>(now));
    if (clock == kOwnClock) append_number(inner_, kIsIncremental, 1);
    append_bytes(part_, kClock, inner_);
  }
  append_bytes(packet_, kClockSnapshot, part_);
  part_.clear();
  inner_.clear();
  append_number(inner_, kTrack, first_track_ + id);
  append_bytes(part_, kDefaultEvent, inner_);
  append_number(part_, kDefaultClock, kOwnClock);
  append_bytes(packet_, kDefaults, part_);
  append_number(packet_, kSequence, first_sequence_ + id);
  append_number(packet_, kSequenceFlags, kStateCleared);
  append_bytes(out_, kTracePacket, packet_);
}

// In the packet of the first slice with that name.
void PerfettoCalls::name_function(std::uint32_t number) {
  const Function function = number == Functions::kNone ? Function{} : functions_.all()[number];
  const std::uint64_t id = number == Functions::kNone ? 1 : std::uint64_t{number} + 2;
  const auto add_text = [&](std::uint32_t field, std::uint64_t string, std::string_view missing) {
    const std::string* text = names_.string(string);
    std::string clean;
    base::append_utf8(clean, text != nullptr ? *text : missing);
    append_bytes(inner_, field, clean);
  };
  std::string interned;
  inner_.clear();
  append_number(inner_, kId, id);
  add_text(kText, function.name, "<unknown>");
  append_bytes(interned, kName, inner_);
  inner_.clear();
  append_number(inner_, kId, id);
  add_text(kFile, function.filename, "");
  append_number(inner_, kLine,
                static_cast<std::uint64_t>(std::max<std::int64_t>(function.line, 0)));
  append_bytes(interned, kPlace, inner_);
  append_bytes(packet_, kInternedData, interned);
}

}  // namespace whence::read
