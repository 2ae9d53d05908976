// own_stack.cpp: see own_stack.h.
#include "base/own_stack.h"

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace whence::base {
namespace {

#if defined(__GLIBC__)

struct Block {
  std::uintptr_t begin;
  std::size_t size, guard;
};

// Other words of a descriptor may be anything, data that the program keeps for the thread among
// them: small numbers, pointers. A block begins with a page, is guarded by whole ones, and ends
// soon after the descriptor: behind what libraries have as thread-local data.
[[nodiscard]] bool fits(const Block& block, std::uintptr_t descriptor) noexcept {
  constexpr std::size_t kPage = 4096, kSmallest = 4 * kPage, kLargest = std::size_t{1} << 36;
  constexpr std::uintptr_t kLowest = 16 * kPage;
  constexpr std::size_t kAlignment = 16;
  constexpr std::size_t kMostBehind = 1 << 20;
  const std::uintptr_t end = block.begin + block.size;
  return ((block.begin | block.guard) & (kPage - 1)) == 0 && block.begin >= kLowest &&
         block.size % kAlignment == 0 && block.size >= kSmallest && block.size <= kLargest &&
         block.guard < block.size && block.begin + block.guard < descriptor && descriptor < end &&
         end - descriptor <= kMostBehind;
}

[[nodiscard]] OwnStack find_in_descriptor() noexcept {
  constexpr std::size_t kLooked = 2048;  // bytes of a descriptor; every glibc's has more
  const auto descriptor = static_cast<std::uintptr_t>(pthread_self());
  for (std::size_t i = 0; i + sizeof(Block) <= kLooked; i += sizeof(std::uintptr_t)) {
    Block block;
    std::memcpy(&block, reinterpret_cast<const char*>(descriptor) + i, sizeof block);
    if (!fits(block, descriptor)) continue;
    auto* begin = reinterpret_cast<char*>(block.begin);
    return {begin + block.guard, begin + block.size};
  }
  return {};
}

#else

[[nodiscard]] OwnStack find_in_descriptor() noexcept {
  return {};
}

#endif

[[nodiscard]] OwnStack ask_c_library() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* bottom = nullptr;
  std::size_t size = 0;
  const bool found = pthread_attr_getstack(&attributes, &bottom, &size) == 0;
  pthread_attr_destroy(&attributes);
  auto* begin = static_cast<char*>(bottom);
  return found ? OwnStack{begin, begin + size} : OwnStack{};
}

}  // namespace

OwnStack own_stack() noexcept {
  const OwnStack found = find_in_descriptor();
  return found.end != nullptr ? found : ask_c_library();
}

}  // namespace whence::base
