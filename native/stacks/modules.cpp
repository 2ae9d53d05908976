// modules.cpp: see modules.h.
#include "stacks/modules.h"

#include <cstdio>
#include <optional>
#include <span>

#include "base/pages.h"
#include "unwind/libraries.h"

namespace whence::stacks {
namespace {

using unwind::Address;
using unwind::FrameName;

constinit Modules the_modules;

[[nodiscard]] bool is_ours(Address pc) noexcept {
  static const auto own = unwind::find_library(reinterpret_cast<Address>(&modules));
  return own.has_value() && pc - own->begin < own->end - own->begin;
}

[[nodiscard]] base::BytePool::Ref keep(std::string_view text) noexcept {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  return base::names().intern(std::span(bytes, text.size()));
}

[[nodiscard]] FrameName named(std::uint32_t module, Address offset) noexcept {
  return module != 0 ? FrameName{module} << 32 | offset : kNameless;
}

}  // namespace

Modules& modules() noexcept {
  return the_modules;
}

// The names are kept before the lock is taken, whose rank is below theirs in no order.
std::uint32_t Modules::intern(std::string_view path, std::string_view build_id) noexcept {
  const Module wanted = {keep(path), keep(build_id)};
  if (wanted.path == base::BytePool::kNone || wanted.build_id == base::BytePool::kNone) return 0;
  const base::Holding holding(lock_);
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 1; i <= count; ++i) {
    const Module& module = *entries_.at(i);
    if (module.path == wanted.path && module.build_id == wanted.build_id) return i;
  }
  if (count == kMost) return 0;
  Module* entry = entries_.ensure(count + 1);
  if (entry == nullptr) return 0;
  *entry = wanted;
  count_.store(count + 1, std::memory_order_release);
  return count + 1;
}

FrameName Modules::anonymous(Address pc) noexcept {
  constexpr Address kLow = 0xFFFFFFFF;
  char path[40];
  const int length = std::snprintf(path, sizeof path, "[anonymous 0x%llx]",
                                   static_cast<unsigned long long>(pc & ~kLow));
  return named(intern({path, static_cast<std::size_t>(length)}, {}), pc & kLow);
}

// What is said of a library is large, and a thread may have little stack left.
FrameName Modules::name(Address pc) noexcept {
  using unwind::Description;
  if (is_ours(pc)) return kOurs;
  auto* description = static_cast<Description*>(base::map_pages(sizeof(Description)));
  if (description == nullptr) return kNameless;
  FrameName name = kNameless;
  if (!unwind::describe_library(pc, *description) || (pc - description->bias) >> 32 != 0) {
    name = anonymous(pc);
  } else {
    char digits[2 * Description::kLongestBuildId];
    for (std::size_t i = 0; i < description->build_id_size; ++i) {
      constexpr char kDigits[] = "0123456789abcdef";
      digits[2 * i] = kDigits[description->build_id[i] >> 4];
      digits[2 * i + 1] = kDigits[description->build_id[i] & 0xF];
    }
    name = named(intern(description->path, {digits, 2 * description->build_id_size}),
                 pc - description->bias);
  }
  base::unmap_pages(description, sizeof(Description));
  return name;
}

}  // namespace whence::stacks
