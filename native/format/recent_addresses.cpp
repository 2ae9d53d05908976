// recent_addresses.cpp: see recent_addresses.h; FORMAT.md, "Packed chunks", is the rule.
#include "format/recent_addresses.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/varint.h"
#include "format/encode.h"
#include "format/kinds.h"
#include "format/records/thread.h"

namespace whence::format {
namespace {

constexpr std::uint64_t kPlaces = 16;

// The last addresses, each once, the newest first. They are turned, as Field::address has them.
class Recent {
 public:
  // Where it is; kPlaces if it is not there.
  [[nodiscard]] std::size_t find(std::uint64_t address) const noexcept {
    std::size_t place = 0;
    while (place < count_ && addresses_[place] != address) ++place;
    return place < count_ ? place : kPlaces;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t operator[](std::size_t place) const noexcept {
    return addresses_[place];
  }
  // Puts an address first that is at that place, or nowhere.
  void put_first(std::size_t place, std::uint64_t address) noexcept {
    if (place == kPlaces) {
      if (count_ < kPlaces) ++count_;
      place = count_ - 1;
    }
    std::memmove(&addresses_[1], &addresses_[0], place * sizeof addresses_[0]);
    addresses_[0] = address;
  }

 private:
  std::array<std::uint64_t, kPlaces> addresses_;
  std::size_t count_ = 0;
};

class Recoder {
 public:
  [[nodiscard]] bool operator()(std::uint64_t& value) noexcept {
    ++addresses_;
    last_ += static_cast<std::uint64_t>(base::unzigzag(value));
    const std::size_t place = recent_.find(last_);
    recent_.put_first(place, last_);
    if (place == kPlaces && value > std::numeric_limits<std::uint64_t>::max() - kPlaces) {
      return false;
    }
    value = place == kPlaces ? value + kPlaces : place;
    return true;
  }
  void forget_last() noexcept { last_ = 0; }
  [[nodiscard]] bool has_seen_addresses() const noexcept { return addresses_ != 0; }

 private:
  Recent recent_;
  std::uint64_t last_ = 0;
  std::size_t addresses_ = 0;
};

class Restorer {
 public:
  [[nodiscard]] bool operator()(std::uint64_t& value) noexcept {
    const std::uint64_t before = last_;
    std::size_t place = kPlaces;
    if (value < kPlaces) {
      place = static_cast<std::size_t>(value);
      if (place >= recent_.count()) return false;
      last_ = recent_[place];
      value = base::zigzag(static_cast<std::int64_t>(last_ - before));
    } else {
      value -= kPlaces;
      last_ += static_cast<std::uint64_t>(base::unzigzag(value));
      if (recent_.find(last_) != kPlaces) return false;  // it would have been a small number
    }
    recent_.put_first(place, last_);
    return true;
  }
  void forget_last() noexcept { last_ = 0; }

 private:
  Recent recent_;
  std::uint64_t last_ = 0;
};

class Output {
 public:
  explicit Output(std::span<std::uint8_t> out) noexcept : begin_(out.data()), left_(out) {}

  [[nodiscard]] bool copy(const std::uint8_t* from, const std::uint8_t* to) noexcept {
    const auto size = static_cast<std::size_t>(to - from);
    if (size > left_.size()) return false;
    std::memcpy(left_.data(), from, size);
    left_ = left_.subspan(size);
    return true;
  }
  [[nodiscard]] bool put(std::uint64_t value) noexcept {
    std::uint8_t bytes[base::kLongestVarint];
    return copy(bytes, put_varint(bytes, value));
  }
  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(left_.data() - begin_);
  }
  [[nodiscard]] bool full() const noexcept { return left_.empty(); }
  void end_record() noexcept { whole_ = size(); }
  [[nodiscard]] std::size_t whole_records() const noexcept { return whole_; }

 private:
  std::uint8_t* begin_;
  std::span<std::uint8_t> left_;
  std::size_t whole_ = 0;  // bytes
};

// Copies records, with each address as `change` has it. False for what is no run of records with
// numbers as short as they can be.
template <class Change>
bool copy_records(std::span<const std::uint8_t> in, Output& out, Change& change) noexcept {
  const std::uint8_t* next = in.data();
  const std::uint8_t* const end = next + in.size();
  while (next != end) {
    const std::uint8_t* done = next;  // so far it is copied
    const std::uint8_t code = *next++;
    const Kind* const kind = kind_of(code);
    const unsigned shape = shape_of(code);
    std::uint64_t value;
    if (shape == 0) return false;
    if (shape == kBody) {
      next = base::get_varint(next, end, value);
      if (next == nullptr || value > static_cast<std::uint64_t>(end - next)) return false;
      next += value;
    }
    for (unsigned i = 0; shape != kBody && i < shape; ++i) {
      const std::uint8_t* const begin = next;
      next = base::get_varint(next, end, value);
      if (next == nullptr) return false;
      if (kind == nullptr || kind->fields[i].type != Field::address) continue;
      if (varint_size(value) != static_cast<std::size_t>(next - begin)) return false;
      if (!out.copy(done, begin) || !change(value) || !out.put(value)) return false;
      done = next;
    }
    if (!out.copy(done, next)) return false;
    out.end_record();
    if (code == Owner::kKind.code) change.forget_last();
  }
  return true;
}

}  // namespace

std::size_t recode(std::span<const std::uint8_t> payload, std::span<std::uint8_t> out) noexcept {
  Output output(out);
  Recoder change;
  if (!copy_records(payload, output, change) || !change.has_seen_addresses()) return 0;
  return output.size();
}

bool restore(std::span<const std::uint8_t> recoded, std::span<std::uint8_t> out) noexcept {
  Output output(out);
  Restorer change;
  return copy_records(recoded, output, change) && output.full();
}

std::size_t restore_beginning(std::span<const std::uint8_t> recoded,
                              std::span<std::uint8_t> out) noexcept {
  Output output(out);
  Restorer change;
  static_cast<void>(copy_records(recoded, output, change));
  return output.whole_records();
}

}  // namespace whence::format
