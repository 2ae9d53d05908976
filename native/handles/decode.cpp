// decode.cpp: see decode.h. Nothing that a file says is used before it has been checked: counts
// against the bytes that are left, places against the columns that they are of.
#include "handles/decode.h"

#include <cstring>
#include <limits>
#include <set>

#include "base/varint.h"
#include "handles/utf8.h"

namespace whence::handles {
namespace {

constexpr std::int64_t kLargestHandle = std::numeric_limits<std::int64_t>::max() - 1;

// The numbers of a payload. After the first that is out of bounds, all others are 0.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) noexcept
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return good_ && next_ == end_; }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - next_); }
  void fail() noexcept { good_ = false; }

  // Not more than `most`.
  std::uint64_t number(std::uint64_t most) noexcept {
    std::uint64_t value = 0;
    const std::uint8_t* after = good_ ? base::get_varint(next_, end_, value) : nullptr;
    if (after == nullptr || value > most) return fail(), 0;
    next_ = after;
    return value;
  }

  std::int64_t signed_number() noexcept {
    return base::unzigzag(number(std::numeric_limits<std::uint64_t>::max()));
  }

  // How many things there are, each of which takes at least so many bytes.
  std::uint32_t count(std::size_t bytes_each) noexcept {
    const std::uint64_t most = left() / bytes_each;
    return static_cast<std::uint32_t>(number(most < kNone ? most : kNone - 1));
  }

  // A value from `least` to `most`, told as how far it is from the one before.
  std::uint32_t near(std::int64_t& before, std::int64_t least, std::int64_t most) noexcept {
    std::int64_t value;
    if (__builtin_add_overflow(before, signed_number(), &value) || value < least || value > most) {
      fail();
      value = least;
    }
    before = value;
    return static_cast<std::uint32_t>(value);
  }

  // A number, or kNone for 0.
  std::uint32_t less_one(std::uint64_t most) noexcept {
    return static_cast<std::uint32_t>(number(most) - 1);
  }

  std::string_view text(std::size_t size) noexcept {
    if (size > left()) return fail(), std::string_view();
    const auto* begin = reinterpret_cast<const char*>(next_);
    next_ += size;
    return {begin, size};
  }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
  bool good_ = true;
};

struct Counts {
  std::uint32_t strings, ranges, calls, records, edges, parents;
};

void get_strings(Reader& reader, std::uint32_t count, Strings& strings) {
  std::vector<std::uint32_t> sizes(count);
  std::size_t total = 0;
  for (std::uint32_t& size : sizes) {
    size = static_cast<std::uint32_t>(reader.number(kLargestNumber));
    total += size;
  }
  if (!reader.good() || total > reader.left()) return reader.fail();
  strings.reserve(count, total);
  for (const std::uint32_t size : sizes) {
    const std::string_view text = reader.text(size);
    if (!is_text(text)) return reader.fail();
    strings.add(text);
  }
}

void get_ranges(Reader& reader, const Counts& counts, std::vector<Range>& ranges) {
  constexpr std::uint64_t kNumber = std::uint64_t{kLargestNumber} + 1;
  ranges.resize(counts.ranges);
  std::int64_t before = 0;
  const std::int64_t last_string = std::int64_t{counts.strings} - 1;
  for (Range& range : ranges) range.filename = reader.near(before, 0, last_string);
  before = 0;
  for (Range& range : ranges) range.line = reader.near(before, 1, kLargestNumber);
  for (Range& range : ranges) range.column = reader.less_one(kNumber);
  for (Range& range : ranges) {
    range.end_line = reader.less_one(kNumber - range.line);
    if (range.end_line != kNone) range.end_line += range.line;
  }
  for (Range& range : ranges) range.end_column = reader.less_one(kNumber);
}

void get_calls(Reader& reader, const Counts& counts, std::vector<Call>& calls) {
  calls.resize(counts.calls);
  const std::uint64_t last_string = counts.strings != 0 ? counts.strings - 1 : 0;
  if (counts.strings == 0 && counts.calls != 0) return reader.fail();
  for (Call& call : calls) call.function = static_cast<std::uint32_t>(reader.number(last_string));
  for (Call& call : calls) call.range = reader.less_one(counts.ranges);
  for (Call& call : calls) call.type = reader.less_one(counts.strings);
  for (Call& call : calls) call.instance = reader.less_one(counts.strings);
  for (std::uint32_t place = 0; place < counts.calls; ++place) {
    const auto back = static_cast<std::uint32_t>(reader.number(place));
    calls[place].callee = back != 0 ? place - back : kNone;
  }
}

// The handle that is there twice, or -1.
std::int64_t get_records(Reader& reader, const Counts& counts, std::vector<Record>& records) {
  records.resize(counts.records);
  std::int64_t handle = -1;
  for (Record& record : records) {
    const std::uint64_t more = reader.number(static_cast<std::uint64_t>(kLargestHandle) + 1);
    if (!reader.good()) return -1;
    if (more == 0) return reader.fail(), handle < 0 ? 0 : handle;
    if (__builtin_add_overflow(handle, static_cast<std::int64_t>(more), &handle) ||
        handle > kLargestHandle) {
      return reader.fail(), -1;
    }
    record.handle = handle;
  }
  std::int64_t before = 0;
  for (Record& record : records) record.range = reader.near(before, 0, counts.ranges) - 1;
  before = 0;
  const std::int64_t last_string = std::int64_t{counts.strings} - 1;
  for (Record& record : records) record.kind = reader.near(before, 0, last_string);
  before = 0;
  for (Record& record : records) record.stack = reader.near(before, 0, counts.calls) - 1;
  return -1;
}

void get_edges(Reader& reader, const Counts& counts, Columns& columns) {
  columns.edges.resize(counts.edges);
  std::uint64_t next = 0;  // the first record that the edge may be of
  for (Edge& edge : columns.edges) {
    const std::uint64_t more = reader.number(counts.records);
    if (more == 0 || next + more > counts.records) return reader.fail();
    next += more;
    edge.record = static_cast<std::uint32_t>(next - 1);
  }
  for (Edge& edge : columns.edges) {
    edge.kind = static_cast<std::uint32_t>(reader.number(kEdgeKinds - 1));
  }
  std::uint32_t first = 0;
  for (Edge& edge : columns.edges) {
    edge.parents = static_cast<std::uint32_t>(reader.number(counts.parents - first));
    edge.first_parent = first;
    first += edge.parents;
  }
  if (!reader.good() || first != counts.parents) return reader.fail();
  columns.parents.resize(counts.parents);
  for (const Edge& edge : columns.edges) {
    const std::int64_t own = columns.records[edge.record].handle;
    for (std::uint32_t i = 0; i < edge.parents; ++i) {
      std::int64_t& parent = columns.parents[edge.first_parent + i];
      if (__builtin_add_overflow(own, reader.signed_number(), &parent) || parent < 0 ||
          parent > kLargestHandle) {
        return reader.fail();
      }
    }
  }
}

struct Payload {
  bool good;
  std::int64_t twice;
};

Counts get_counts(Reader& reader) noexcept {
  Counts counts{};
  counts.strings = reader.count(1);
  counts.ranges = reader.count(5);
  counts.calls = reader.count(5);
  counts.records = reader.count(4);
  counts.edges = reader.count(3);
  counts.parents = reader.count(1);
  return counts;
}

Payload get_payload(std::span<const std::uint8_t> bytes, Columns& columns) {
  Reader reader(bytes);
  const Counts counts = get_counts(reader);
  columns.top = reader.less_one(counts.strings);
  if (!reader.good()) return {false, -1};
  get_strings(reader, counts.strings, columns.strings);
  if (!reader.good()) return {false, -1};
  get_ranges(reader, counts, columns.ranges);
  get_calls(reader, counts, columns.calls);
  if (!reader.good()) return {false, -1};
  const std::int64_t twice = get_records(reader, counts, columns.records);
  if (!reader.good()) return {false, twice};
  get_edges(reader, counts, columns);
  return {reader.at_end(), -1};
}

template <class Header>
Header read_header(std::span<const std::uint8_t> bytes) noexcept {
  Header header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  return header;
}

Problem check_header(const FileHeader& header, std::size_t size, Loaded& loaded) noexcept {
  if (header.magic != kMagic) return Problem::no_table;
  if (header.major > kMajor) return loaded.detail = header.major, Problem::too_new;
  if (header.checksum != checksum_of(header) || header.major != kMajor) return Problem::damaged;
  if (header.size > size) return loaded.detail = header.size, Problem::cut;
  const std::size_t most_parts = (size - sizeof header) / sizeof(PartHeader);
  if (header.size != size || header.parts > most_parts) return Problem::damaged;
  return Problem::none;
}

// Takes a part off the front of `rest`.
Problem get_part(std::span<const std::uint8_t>& rest, Loaded& loaded, std::set<Namespace>& known) {
  if (rest.size() < sizeof(PartHeader)) return Problem::damaged;
  const auto header = read_header<PartHeader>(rest);
  rest = rest.subspan(sizeof header);
  if (header.checksum != checksum_of(header) || header.size > rest.size()) return Problem::damaged;
  const auto payload = rest.first(header.size);
  rest = rest.subspan(header.size);
  if (base::checksum(payload.data(), payload.size()) != header.payload_checksum ||
      !known.insert(header.name_space).second) {
    return Problem::damaged;
  }
  LoadedPart& part = loaded.parts.emplace_back(header.name_space);
  const Payload found = get_payload(payload, part.columns);
  if (found.twice >= 0)
    return loaded.detail = static_cast<std::uint64_t>(found.twice), Problem::twice;
  return found.good ? Problem::none : Problem::damaged;
}

}  // namespace

Loaded decode(std::span<const std::uint8_t> bytes) {
  Loaded loaded;
  if (bytes.size() < sizeof(FileHeader)) {
    const std::size_t there = std::min(bytes.size(), kMagic.size());
    const bool begins = there != 0 && std::memcmp(bytes.data(), kMagic.data(), there) == 0;
    loaded.problem = begins ? Problem::cut : Problem::no_table;
    loaded.detail = begins ? sizeof(FileHeader) : 0;
    return loaded;
  }
  const auto header = read_header<FileHeader>(bytes);
  loaded.problem = check_header(header, bytes.size(), loaded);
  auto rest = bytes.subspan(sizeof header);
  std::set<Namespace> known;
  for (std::uint32_t i = 0; i < header.parts && loaded.problem == Problem::none; ++i) {
    loaded.problem = get_part(rest, loaded, known);
  }
  if (loaded.problem == Problem::none && !rest.empty()) loaded.problem = Problem::damaged;
  if (loaded.problem != Problem::none) loaded.parts.clear();
  return loaded;
}

std::uint64_t decoded_size(std::span<const std::uint8_t> bytes) noexcept {
  constexpr std::uint64_t kString = sizeof(std::size_t) + sizeof(std::uint32_t);
  std::uint64_t size = 0;
  auto rest = bytes.subspan(std::min(bytes.size(), sizeof(FileHeader)));
  while (rest.size() >= sizeof(PartHeader)) {
    const auto header = read_header<PartHeader>(rest);
    rest = rest.subspan(sizeof header);
    const auto payload = rest.first(std::min<std::uint64_t>(header.size, rest.size()));
    rest = rest.subspan(payload.size());
    Reader reader(payload);
    const Counts counts = get_counts(reader);
    size += sizeof(LoadedPart) + payload.size() + counts.strings * kString +
            counts.ranges * sizeof(Range) + counts.calls * sizeof(Call) +
            counts.records * sizeof(Record) + counts.edges * sizeof(Edge) +
            counts.parents * sizeof(std::int64_t);
  }
  return size;
}

}  // namespace whence::handles
