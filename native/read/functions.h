// functions.h: the functions that calls are of, numbered from 0 as they are met.
//
// Threads: a table belongs to one. Allocates: for each function, up to a budget.
// Fails by: kNone for a function that there is no room for; std::bad_alloc.
//
// Code objects that have the same name, file and line are one function to a reader: a lambda that
// is made twice, a comprehension beside another.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "read/budget.h"
#include "read/names.h"
#include "read/open_calls.h"

namespace whence::read {

struct Function {
  std::uint64_t name;                // strings; 0: not known
  std::uint64_t filename;            // 0: written in C, or not known
  std::optional<std::int64_t> line;  // none: written in C, or not known
  bool native;

  bool operator==(const Function&) const = default;
};

class Functions {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  // Both outlive it.
  Functions(const Names& names, Budget& budget) noexcept : names_(names), budget_(budget) {}

  [[nodiscard]] std::uint32_t of(const Call& call) {
    if (call.native) return find(call.name, true);
    if (call.code < near_.size() && near_[call.code] != kNone) [[likely]]
      return near_[call.code];
    return find_code(call.code);
  }
  [[nodiscard]] const std::vector<Function>& all() const noexcept { return all_; }

 private:
  struct Hash {
    std::size_t operator()(const Function& function) const noexcept;
  };

  [[nodiscard]] std::uint32_t find(std::uint64_t what, bool native);
  [[nodiscard]] std::uint32_t find_code(std::uint64_t code);
  [[nodiscard]] const SourcePlace* source_of(const CodeEntry& code) noexcept;

  const Names& names_;
  Budget& budget_;
  Budget decoded_{256u << 20, 0};    // bytes of line tables: a second or so
  std::vector<std::uint32_t> near_;  // of codes with small numbers, which nearly all have
  IdMap<std::uint32_t> by_code_, by_name_;
  std::unordered_map<Function, std::uint32_t, Hash> numbers_;
  std::vector<Function> all_;
};

}  // namespace whence::read
