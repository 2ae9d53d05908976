// builder.cpp: see builder.h.
#include "handles/builder.h"

#include <stdexcept>
#include <utility>

#include "base/hash.h"

namespace whence::handles {
namespace {

constexpr std::size_t kFirstSlots = 64;

template <class Item>
std::uint64_t hash_of(const Item& item) noexcept {
  static_assert(std::has_unique_object_representations_v<Item>);
  return base::hash_bytes(&item, sizeof item);
}

std::uint32_t next_place(std::size_t size) {
  if (size >= kNone) throw std::length_error("a column of handles is full");
  return static_cast<std::uint32_t>(size);
}

template <class Item>
std::uint32_t intern(Places& places, std::vector<Item>& column, const Item& item) {
  const std::uint32_t next = next_place(column.size());
  const std::uint32_t place =
      places.find_or_add(hash_of(item), next, [&](std::uint32_t at) { return column[at] == item; });
  if (place == next) column.push_back(item);
  return place;
}

}  // namespace

void Places::grow() {
  std::vector<Slot> before(slots_.empty() ? kFirstSlots : slots_.size() * 2, Slot{0, kNone});
  before.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.place == kNone) continue;
    std::size_t at = slot.hash & mask_;
    while (slots_[at].place != kNone) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

std::uint32_t Builder::string(std::string_view text) {
  if (text.size() > kLargestNumber) throw std::length_error("a string is too long for a table");
  Strings& column = columns_.strings;
  const std::uint32_t next = next_place(column.size());
  const std::uint32_t place =
      strings_.find_or_add(base::hash_bytes(text.data(), text.size()), next,
                           [&](std::uint32_t at) { return column[at] == text; });
  if (place == next) column.add(text);
  return place;
}

std::uint32_t Builder::range(const Range& range) {
  return intern(ranges_, columns_.ranges, range);
}

std::uint32_t Builder::call(const Call& call) {
  return intern(calls_, columns_.calls, call);
}

void Builder::record(const Record& record) {
  (void)next_place(columns_.records.size());
  columns_.records.push_back(record);
}

void Builder::edge(std::uint32_t kind, std::span<const std::int64_t> parents) {
  const std::uint32_t first = next_place(columns_.parents.size() + parents.size()) -
                              static_cast<std::uint32_t>(parents.size());
  columns_.parents.insert(columns_.parents.end(), parents.begin(), parents.end());
  columns_.edges.push_back({static_cast<std::uint32_t>(columns_.records.size() - 1), kind, first,
                            static_cast<std::uint32_t>(parents.size())});
}

}  // namespace whence::handles
