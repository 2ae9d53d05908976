// encode.cpp: see encode.h.
#include "handles/encode.h"

#include <cstring>
#include <utility>

#include "base/varint.h"

namespace whence::handles {
namespace {

// Puts columns behind each other, in room that is made for a column at a time.
class Writer {
 public:
  explicit Writer(std::string& out) noexcept : out_(out) {}

  void number(std::uint64_t value) {
    std::uint8_t bytes[base::kLongestVarint];
    append(bytes, base::put_varint(bytes, value));
  }

  // One number for each item.
  template <class Items, class Number>
  void column(const Items& items, Number number_of) {
    std::uint8_t piece[kPiece + base::kLongestVarint];
    std::uint8_t* next = piece;
    for (const auto& item : items) {
      next = base::put_varint(next, number_of(item));
      if (next < piece + kPiece) continue;
      append(piece, next);
      next = piece;
    }
    append(piece, next);
  }

  // Of each item, how far from the one before.
  template <class Items, class Number>
  void deltas(const Items& items, Number number_of) {
    std::int64_t before = 0;
    column(items, [&](const auto& item) {
      const auto value = static_cast<std::int64_t>(number_of(item));
      return base::zigzag(value - std::exchange(before, value));
    });
  }

 private:
  static constexpr std::size_t kPiece = 4096;

  void append(const std::uint8_t* begin, const std::uint8_t* end) {
    out_.append(reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin));
  }

  std::string& out_;
};

// kNone becomes 0.
constexpr std::uint64_t plus_one(std::uint32_t value) noexcept {
  return static_cast<std::uint32_t>(value + 1);
}

void put_strings(Writer& writer, std::string& out, const Strings& strings) {
  for (std::uint32_t at = 0; at < strings.size(); ++at) writer.number(strings[at].size());
  out += strings.bytes();
}

void put_ranges(Writer& writer, const std::vector<Range>& ranges) {
  writer.deltas(ranges, [](const Range& range) { return range.filename; });
  writer.deltas(ranges, [](const Range& range) { return range.line; });
  writer.column(ranges, [](const Range& range) { return plus_one(range.column); });
  writer.column(ranges, [](const Range& range) {
    return range.end_line == kNone ? 0 : plus_one(range.end_line - range.line);
  });
  writer.column(ranges, [](const Range& range) { return plus_one(range.end_column); });
}

void put_calls(Writer& writer, const std::vector<Call>& calls) {
  writer.column(calls, [](const Call& call) { return call.function; });
  writer.column(calls, [](const Call& call) { return plus_one(call.range); });
  writer.column(calls, [](const Call& call) { return plus_one(call.type); });
  writer.column(calls, [](const Call& call) { return plus_one(call.instance); });
  writer.column(calls, [place = 0u](const Call& call) mutable {
    const std::uint32_t own = place++;
    return call.callee == kNone ? 0 : own - call.callee;
  });
}

void put_records(Writer& writer, const std::vector<Record>& records) {
  writer.column(records, [before = std::int64_t{-1}](const Record& record) mutable {
    return static_cast<std::uint64_t>(record.handle - std::exchange(before, record.handle));
  });
  writer.deltas(records, [](const Record& record) { return plus_one(record.range); });
  writer.deltas(records, [](const Record& record) { return record.kind; });
  writer.deltas(records, [](const Record& record) { return plus_one(record.stack); });
}

void put_edges(Writer& writer, const Columns& columns) {
  writer.column(columns.edges, [before = std::int64_t{-1}](const Edge& edge) mutable {
    const auto record = static_cast<std::int64_t>(edge.record);
    return static_cast<std::uint64_t>(record - std::exchange(before, record));
  });
  writer.column(columns.edges, [](const Edge& edge) { return edge.kind; });
  writer.column(columns.edges, [](const Edge& edge) { return edge.parents; });
  for (const Edge& edge : columns.edges) {
    const std::int64_t own = columns.records[edge.record].handle;
    writer.column(std::span(columns.parents).subspan(edge.first_parent, edge.parents),
                  [own](std::int64_t parent) { return base::zigzag(parent - own); });
  }
}

void put_payload(std::string& out, const Columns& columns) {
  Writer writer(out);
  for (const std::size_t count :
       {std::size_t{columns.strings.size()}, columns.ranges.size(), columns.calls.size(),
        columns.records.size(), columns.edges.size(), columns.parents.size()}) {
    writer.number(count);
  }
  writer.number(plus_one(columns.top));
  put_strings(writer, out, columns.strings);
  put_ranges(writer, columns.ranges);
  put_calls(writer, columns.calls);
  put_records(writer, columns.records);
  put_edges(writer, columns);
}

template <class Header>
void seal(std::string& out, std::size_t at, Header header) {
  header.checksum = checksum_of(header);
  std::memcpy(out.data() + at, &header, sizeof header);
}

}  // namespace

std::string encode(std::span<const Part> parts) {
  std::string out(sizeof(FileHeader), '\0');
  for (const Part& part : parts) {
    const std::size_t begin = out.size();
    out.resize(begin + sizeof(PartHeader));
    put_payload(out, *part.columns);
    const std::size_t payload = begin + sizeof(PartHeader);
    PartHeader header{.name_space = part.name_space, .size = out.size() - payload};
    header.payload_checksum = base::checksum(out.data() + payload, header.size);
    seal(out, begin, header);
  }
  seal(out, 0, FileHeader{.parts = static_cast<std::uint32_t>(parts.size()), .size = out.size()});
  return out;
}

}  // namespace whence::handles
