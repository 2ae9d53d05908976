// fuzz_recording.cpp: any bytes are read to their end, counted and rewritten.
//
// Checksums would keep a fuzzer out: the input is also read with all of them made right.
#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "base/checksum.h"
#include "format/recent_addresses.h"
#include "read/call_tree.h"
#include "read/calls.h"
#include "read/largest_blocks.h"
#include "read/lines.h"
#include "read/live_segments.h"
#include "read/memory_failures.h"
#include "read/memory_groups.h"
#include "read/memory_history.h"
#include "read/memory_taken.h"
#include "read/memory_usage.h"
#include "read/names.h"
#include "read/newest_events.h"
#include "read/rewrite.h"
#include "read/spans.h"
#include "read/timeline.h"
#include "read/totals.h"

namespace {

using namespace whence;

// Stands for zstd: every byte stands for itself as often as the first one says.
read::Unpacked unpack(void*, std::span<const std::uint8_t> packed, std::span<std::uint8_t> out,
                      std::size_t* part) {
  if (part != nullptr) {
    *part = std::min(out.size(), (packed.size() + 1) / 2);
    out = out.first(*part);
  }
  if (packed.empty()) return read::Unpacked::bad;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = packed[1 + i / (packed[0] + 1u) < packed.size() ? 1 + i / (packed[0] + 1u) : 0];
  }
  return read::Unpacked::good;
}

bool pack(void*, std::span<const std::uint8_t> payload, std::vector<std::uint8_t>& out) {
  out.assign(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(payload.size() / 2));
  return true;
}

void expect(bool truth) {
  if (!truth) std::abort();
}

// What is entered in a part is left in it, in that order, and the tree has all of it.
void read_part(const read::Source& source, const read::Names& names, const read::Timeline& timeline,
               std::int64_t from, std::int64_t to) {
  read::Slice slice;
  slice.from = from;
  slice.to = to;
  read::CallReader calls(source, names, timeline, slice);
  read::Budget budget(1 << 24, source.input().size());
  read::CallTree tree(names, budget);
  std::map<std::uint32_t, std::vector<std::uint64_t>> open;
  std::uint64_t counted = 0, told = 0;
  read::CallStep step;
  while (calls.next(step) == read::Next::record) {
    tree.take(step);
    std::vector<std::uint64_t>& around = open[step.call.thread];
    expect(step.call.depth == around.size() - (step.what == read::CallStep::What::left));
    if (step.what == read::CallStep::What::entered) {
      expect(step.call.start >= from);
      around.push_back(step.call.number);
      continue;
    }
    counted = read::add_counts(counted, step.call.count);
    if (step.what == read::CallStep::What::folded) continue;
    expect(around.back() == step.call.number && step.call.own <= step.call.duration);
    around.pop_back();
  }
  for (const auto& [thread, around] : open) expect(around.empty());
  for (const read::TreeNode& node : tree.nodes()) told = read::add_counts(told, node.calls);
  expect(read::add_counts(told, tree.left_out()) == counted);
  std::uint64_t again = 0;
  for (const read::FunctionTotal& total : read::add_up(tree)) {
    again = read::add_counts(again, total.calls);
    expect(total.own <= total.total || total.total == ~std::uint64_t{0});
  }
  expect(again == told);
}

// Each call is within the recording, and has one that was entered before it around it.
void read_calls(const read::Source& source, const read::Names& names,
                const read::Timeline& timeline) {
  read::CallReader calls(source, names, timeline), again(source, names, timeline);
  read::Call call;
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  while (calls.next(call) == read::Next::record) {
    expect(call.own >= 0 && call.own <= call.duration && call.count != 0);
    expect(call.number > call.parent && (call.depth == 0) == (call.parent == 0));
    first = std::min(first, call.start);
    last = std::max(last, call.start);
  }
  if (first < last) read_part(source, names, timeline, first / 2 + last / 2, last);
  read::Lines lines(names, source.input().size());
  read::ExceptionSeen seen;
  while (again.next(seen) == read::Next::record) {
    static_cast<void>(lines.line(seen.code, seen.offset));
  }
  expect(calls.unmatched() == again.unmatched() && calls.left_out() == again.left_out());
}

void answer(read::MemoryQuery& query) {
  read::Next next;
  while ((next = query.advance()) == read::Next::record) continue;
  expect(next == read::Next::end);
}

// What is in use at the peak adds up to it, and what is at the end is where usage has got to.
void read_memory(const read::Source& source, const read::Timeline& timeline, read::Slice slice) {
  read::PeakOfMemory peak(source, timeline, slice);
  answer(peak);
  read::LiveGroups::Wanted wanted;
  read::LiveGroups last(source, timeline, slice, wanted);
  read::MemoryUsage usage(source, timeline, slice, timeline.at(read::last_ticks(source)), 7);
  read::Churn churn(source, timeline, slice, ~std::uint64_t{0});
  read::MemoryHistory history(source, timeline, slice, 0x7FFF00001000, std::nullopt);
  read::MemoryFailures failures(source, timeline, slice);
  for (read::MemoryQuery* query :
       std::initializer_list<read::MemoryQuery*>{&last, &usage, &churn, &history, &failures}) {
    answer(*query);
    expect(query->replay().left_out() == peak.replay().left_out());
  }
  const auto bytes_of = [](const std::vector<read::MemoryGroup>& groups) {
    std::uint64_t sum = 0;
    for (const read::MemoryGroup& group : groups) sum += group.bytes;
    return sum;
  };
  expect(bytes_of(peak.groups()) == peak.bytes());
  expect(usage.points().size() <= 8 && usage.resident().size() <= 7);
  std::uint64_t most = 0;
  for (const read::UsagePoint& point : usage.points()) most = std::max(most, point.bytes);
  expect(most == peak.bytes());
  if (!usage.points().empty()) expect(usage.points().back().bytes == bytes_of(last.groups()));

  // The largest of what is in use and the others are all of it; what was taken is among the events.
  using Which = read::LargestBlocks::Which;
  read::LargestBlocks largest(source, timeline, slice, Which::in_use, 3);
  read::LargestBlocks begun(source, timeline, slice, Which::taken, 0);
  read::NewestEvents newest(source, timeline, slice, 3);
  read::LiveSegments segments(source, timeline, slice, 3);
  read::TakenGroups taken(source, timeline, slice);
  for (read::MemoryQuery* query :
       std::initializer_list<read::MemoryQuery*>{&largest, &begun, &newest, &segments, &taken}) {
    answer(*query);
  }
  std::uint64_t in_use = largest.bytes_left_out();
  for (const read::BlockRow& block : largest.blocks()) in_use += block.size;
  expect(in_use == bytes_of(last.groups()));
  expect(largest.blocks().size() <= 3 && newest.events().size() <= 3);
  expect(segments.segments().size() <= 3);
  expect(begun.bytes_left_out() == bytes_of(taken.groups()));
}

void read_everything(std::span<const std::uint8_t> bytes) {
  read::Source source(read::Input::of_memory(bytes), {unpack, nullptr});
  if (source.open() != read::Opened::good) return;
  const read::Timeline timeline(source);
  read::Names names;
  expect(names.fill(source));
  static_cast<void>(names.info("program"));
  read::Cursor cursor(source, read::Select::all);
  format::Record record;
  std::uint64_t records = 0, events = 0;
  while (cursor.next(record) == read::Next::record) {
    ++records;
    events += record.kind != nullptr && record.kind->event;
    static_cast<void>(timeline.at(record.time));
    static_cast<void>(timeline.lasted(record.time, record.values[0]));
  }
  read::SpanReader spans(source);
  read::Span span;
  std::uint64_t count = 0;
  while (spans.next(span) == read::Next::record) ++count;
  expect(count <= records);
  read_calls(source, names, timeline);
  read_memory(source, timeline, {});
  read::Slice later;
  later.from = timeline.at(read::last_ticks(source)) / 2;
  read_memory(source, timeline, later);
  const read::Totals totals = read::count(source);
  expect(totals.records == records && totals.recorded >= events);
  static const int sink = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const auto again = read::rewrite(source, sink, {{pack, nullptr}, records % 3 * 1000});
  expect(again.error == 0 && !again.aborted && again.totals.recorded <= totals.recorded);
}

template <class Header>
bool load(const std::vector<std::uint8_t>& bytes, std::size_t offset, Header& header) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof header) return false;
  std::memcpy(&header, bytes.data() + offset, sizeof header);
  return true;
}

// Puts the checksum of a chunk right, and returns where the next one begins.
std::size_t correct_chunk(std::vector<std::uint8_t>& bytes, std::size_t offset,
                          const format::FileHeader& file) {
  format::ChunkHeader chunk;
  if (!load(bytes, offset, chunk)) return bytes.size();
  std::memcpy(&chunk.file_id, file.file_id.data(), sizeof chunk.file_id);
  chunk.magic = format::kChunkMagic;
  const std::size_t payload = offset + sizeof chunk;
  const std::size_t size = format::Committed::from(chunk.committed).bytes;
  const bool compact = file.layout == format::Layout::compact;
  const bool plain = !compact || chunk.coding == format::Coding::plain;
  if (plain && size <= bytes.size() - payload) {
    chunk.payload_checksum = base::checksum(bytes.data() + payload, size);
  } else if (size <= file.chunk_size && chunk.stored <= bytes.size() - payload) {
    const bool recoded = chunk.coding == format::Coding::recoded_zstd;
    std::vector<std::uint8_t> out(recoded ? std::min(chunk.recoded, file.chunk_size) : size);
    static_cast<void>(unpack(nullptr, {bytes.data() + payload, chunk.stored}, out, nullptr));
    if (recoded) {
      std::vector<std::uint8_t> restored(size);
      if (format::restore(out, restored)) out = std::move(restored);
    }
    chunk.payload_checksum = base::checksum(out.data(), out.size());
  }
  format::seal_opening(chunk);
  format::seal_closing(chunk);
  std::memcpy(bytes.data() + offset, &chunk, sizeof chunk);
  return compact ? payload + chunk.stored : offset + file.chunk_size;
}

void correct(std::vector<std::uint8_t>& bytes) {
  format::FileHeader file;
  if (!load(bytes, 0, file)) return;
  file.magic = format::kMagic;
  file.major = format::kMajor;
  format::seal_opening(file);
  if (file.closing_checksum != 0) format::seal_closing(file);
  std::memcpy(bytes.data(), &file, sizeof file);
  if (format::check_header(file) != format::HeaderCheck::good) return;
  for (std::size_t at = file.header_size; at < bytes.size();) at = correct_chunk(bytes, at, file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_everything({data, size});
  std::vector<std::uint8_t> bytes(data, data + size);
  correct(bytes);
  read_everything(bytes);
  return 0;
}
