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
  if (current_ == nullptr || call.thread != current_id_) {
    current_ = &threads_[call.thread];
    current_id_ = call.thread;
  }
  const bool ends = step.what == CallStep::What::left;
  const std::int64_t now = start_ + call.start + (ends ? call.duration : 0);
  if (!current_->begun) begin_sequence(*current_, call.thread, now);
  if (ends) {
    put_event(now, 0);
    return;
  }
  const std::uint32_t function = functions_.of(call);
  const std::uint64_t id = function == Functions::kNone ? 1 : std::uint64_t{function} + 2;
  std::vector<bool>& known = current_->known;
  if (known.size() < id) known.resize(id, false);
  if (!known[id - 1]) {
    known[id - 1] = true;
    name_function(function, id);
  }
  put_event(now, id);
  if (step.what == CallStep::What::folded) put_event(now + call.duration, 0);
}

// A slice begins, with the name of this id, or ends, with none. Nothing in it is longer than a byte
// can say, so it is written without being measured first.
void PerfettoCalls::put_event(std::int64_t now, std::uint64_t id) {
  const std::int64_t since = now > current_->now ? now - current_->now : 0;
  current_->now += since;
  std::uint8_t bytes[80];
  std::uint8_t* out = bytes + 2;
  const auto number = [&](std::uint32_t field, std::uint64_t value) {
    out = base::put_varint(base::put_varint(out, field << 3), value);
  };
  number(kTimestamp, static_cast<std::uint64_t>(since));
  number(kSequence, first_sequence_ + current_id_);
  *out++ = kTrackEvent << 3 | 2;
  std::uint8_t* size = out++;
  number(kType, id != 0 ? kSliceBegin : kSliceEnd);
  if (id != 0) {
    number(kNameId, id);
    number(kPlaceId, id);
  }
  *size = static_cast<std::uint8_t>(out - size - 1);
  bytes[0] = kTracePacket << 3 | 2;
  bytes[1] = static_cast<std::uint8_t>(out - bytes - 2);
  out_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(out - bytes));
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

// In a packet of its own, before the first slice with that name.
void PerfettoCalls::name_function(std::uint32_t number, std::uint64_t id) {
  const Function function = number == Functions::kNone ? Function{} : functions_.all()[number];
  const auto add_text = [&](std::uint32_t field, std::uint64_t string, std::string_view missing) {
    const std::string* text = names_.string(string);
    std::string clean;
    base::append_utf8(clean, text != nullptr ? *text : missing);
    append_bytes(inner_, field, clean);
  };
  part_.clear();
  inner_.clear();
  append_number(inner_, kId, id);
  add_text(kText, function.name, "<unknown>");
  append_bytes(part_, kName, inner_);
  inner_.clear();
  append_number(inner_, kId, id);
  add_text(kFile, function.filename, "");
  const auto line =
      static_cast<std::uint64_t>(std::max<std::int64_t>(function.line.value_or(0), 0));
  append_number(inner_, kLine, line);
  append_bytes(part_, kPlace, inner_);
  packet_.clear();
  append_bytes(packet_, kInternedData, part_);
  append_number(packet_, kSequence, first_sequence_ + current_id_);
  append_bytes(out_, kTracePacket, packet_);
}

}  // namespace whence::read
