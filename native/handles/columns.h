// columns.h: what a table of handles holds, each thing once, as numbers.
//
// Threads: any, as long as nobody changes it; decode() and Builder give it whole.
// Allocates: its vectors. Fails by: find() returns kNone.
//
// Everything that is told more than once is a place in a column: strings in ranges, calls and
// records; ranges and calls in records. A call refers to callees before itself only, so there are
// no cycles. FORMAT.md has the same columns in bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace whence::handles {

inline constexpr std::uint32_t kNone = 0xFFFFFFFF;           // nothing, or not known
inline constexpr std::uint32_t kLargestNumber = 0x7FFFFFFF;  // of a line or a column

struct Range {
  std::uint32_t filename;
  std::uint32_t line;
  std::uint32_t column;
  std::uint32_t end_line;
  std::uint32_t end_column;

  bool operator==(const Range&) const noexcept = default;
};

struct Call {
  std::uint32_t function;
  std::uint32_t range;
  std::uint32_t type;
  std::uint32_t instance;
  std::uint32_t callee;

  bool operator==(const Call&) const noexcept = default;
};

struct Record {
  std::int64_t handle;
  std::uint32_t range;
  std::uint32_t kind;
  std::uint32_t stack;
};

inline constexpr unsigned kEdgeKinds = 4;  // fused, split, inlined, rewritten

struct Edge {
  std::uint32_t record;
  std::uint32_t kind;
  std::uint32_t first_parent;
  std::uint32_t parents;
};

class Strings {
 public:
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(ends_.size());
  }
  [[nodiscard]] std::string_view operator[](std::uint32_t at) const noexcept {
    const std::size_t begin = at != 0 ? ends_[at - 1] : 0;
    return std::string_view(bytes_).substr(begin, ends_[at] - begin);
  }
  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }

  void add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  void reserve(std::size_t count, std::size_t bytes) {
    ends_.reserve(count);
    bytes_.reserve(bytes);
  }

 private:
  std::vector<std::size_t> ends_;
  std::string bytes_;
};

struct Columns {
  Strings strings;
  std::vector<Range> ranges;
  std::vector<Call> calls;
  std::vector<Record> records;  // by handle
  std::vector<Edge> edges;      // by record
  std::vector<std::int64_t> parents;
  std::uint32_t top = kNone;

  // The place of its record.
  [[nodiscard]] std::uint32_t find(std::int64_t handle) const noexcept {
    const auto found = std::ranges::lower_bound(records, handle, {}, &Record::handle);
    if (found == records.end() || found->handle != handle) return kNone;
    return static_cast<std::uint32_t>(found - records.begin());
  }

  // Of the record at a place; nullptr for one that was derived from nothing.
  [[nodiscard]] const Edge* edge_of(std::uint32_t record) const noexcept {
    const auto found = std::ranges::lower_bound(edges, record, {}, &Edge::record);
    return found != edges.end() && found->record == record ? &*found : nullptr;
  }
};

}  // namespace whence::handles
