// libraries_generation.cpp: see libraries_generation.h.
#include "base/libraries_generation.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>

namespace whence::base {
namespace {

// How often the loader has added a library is a word among its variables, which nobody names. But
// it is told under a lock, and it is one of the words that hold this number. There are others: how
// many are loaded now is the same until the first is unloaded, and some may be by chance. So a
// change in any of them counts, and changes of one must not make up for those of another.
class Additions {
 public:
  void find() noexcept {
    const std::uint64_t now = ask();
    Dl_info info;
    const ElfW(Sym)* symbol = nullptr;
    void* variables = dlsym(RTLD_DEFAULT, "_rtld_global");
    if (variables == nullptr) return;
    if (dladdr1(variables, &info, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol)),
                RTLD_DL_SYMENT) == 0 ||
        symbol == nullptr || info.dli_saddr != variables) {
      return;
    }
    const auto* words = static_cast<const std::uint64_t*>(variables);
    std::size_t count = 0;
    for (std::size_t i = 0; i < symbol->st_size / sizeof(std::uint64_t); ++i) {
      if (read(words + i) != now) continue;
      if (count == kMost) return;
      words_[count++] = words + i;
    }
    count_ = ask() == now ? count : 0;
  }

  [[nodiscard]] std::uint64_t now() const noexcept {
    if (count_ == 0) return ask();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count_; ++i) sum = (sum + read(words_[i])) * kSpread;
    return sum;
  }

 private:
  static constexpr std::size_t kMost = 4;
  static constexpr std::uint64_t kSpread = 0xD1342543DE82EF95;

  [[nodiscard]] static std::uint64_t read(const std::uint64_t* word) noexcept {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
  }
  [[nodiscard]] static std::uint64_t ask() noexcept {
    std::uint64_t added = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* first, std::size_t, void* out) noexcept {
          *static_cast<std::uint64_t*>(out) = first->dlpi_adds;
          return 1;
        },
        &added);
    return added;
  }

  const std::uint64_t* words_[kMost] = {};
  std::size_t count_ = 0;
};

[[nodiscard]] const Additions& additions() noexcept {
  static const Additions found = [] {
    Additions made;
    made.find();
    return made;
  }();
  return found;
}
// Before main(), and before anybody asks inside an allocator or a signal handler.
[[gnu::constructor]] void find_additions() noexcept {
  static_cast<void>(additions());
}

}  // namespace

std::uint64_t libraries_generation() noexcept {
  return additions().now();
}

}  // namespace whence::base
