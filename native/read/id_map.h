// id_map.h: a table by the numbers that a file uses.
//
// Threads: as std::unordered_map. Allocates: as it. Fails by: std::bad_alloc.
//
// The standard hash of a number is the number: a file could choose numbers that all fall into one
// bucket, and keep its reader busy for hours. Where this program happens to be in memory is not for
// a file to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/hash.h"

namespace whence::read {

struct IdHash {
  std::size_t operator()(std::uint64_t id) const noexcept {
    static constexpr char kSomewhere = 0;
    return base::mix(reinterpret_cast<std::uintptr_t>(&kSomewhere), id);
  }
};

template <class Value>
using IdMap = std::unordered_map<std::uint64_t, Value, IdHash>;

}  // namespace whence::read
