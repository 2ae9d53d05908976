// loaded_library.h: what the program headers and the dynamic section of a loaded library say. The
// ELF specification and its supplements for each machine say what is where.
//
// Threads: any, while the loader lets nobody unload it: inside dl_iterate_phdr().
// Allocates: never. Fails by: there are no slots, and no names.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace whence::base {

#if defined(__x86_64__)
inline constexpr bool kSlotsAreKnown = true;
inline constexpr std::uint32_t kLazySlot = R_X86_64_JUMP_SLOT, kSlot = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
inline constexpr bool kSlotsAreKnown = true;
inline constexpr std::uint32_t kLazySlot = R_AARCH64_JUMP_SLOT, kSlot = R_AARCH64_GLOB_DAT;
#else
inline constexpr bool kSlotsAreKnown = false;
inline constexpr std::uint32_t kLazySlot = 0, kSlot = 0;
#endif

class LoadedLibrary {
 public:
  explicit LoadedLibrary(const dl_phdr_info& info) noexcept;

  [[nodiscard]] bool contains(const void* address) const noexcept;
  // How many libraries there were that are no more.
  [[nodiscard]] std::uint64_t unloaded_so_far() const noexcept { return info_.dlpi_subs; }
  [[nodiscard]] bool is_loader() const noexcept;
  // May others find a function or variable of this name in it? Yes, where it cannot be known.
  [[nodiscard]] bool may_define(const char* name) const noexcept;

  // Pages that are read-only once the library is loaded; empty if there are none.
  [[nodiscard]] std::uintptr_t sealed_begin() const noexcept { return sealed_begin_; }
  [[nodiscard]] std::uintptr_t sealed_end() const noexcept { return sealed_end_; }
  [[nodiscard]] bool is_sealed(const void* slot) const noexcept {
    return reinterpret_cast<std::uintptr_t>(slot) - sealed_begin_ < sealed_end_ - sealed_begin_;
  }

  // visit(slot, name, lazy) for every slot of a function or variable.
  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    if (symbols_ == nullptr || strings_ == nullptr) return;
    for (const Table& table : {at_once_, lazy_}) {
      for (std::size_t i = 0; i < table.count; ++i) {
        const Relocation& relocation = table.begin[i];
        const auto type = static_cast<std::uint32_t>(relocation.r_info);
        if (type != kLazySlot && type != kSlot) continue;
        const Symbol& symbol = symbols_[relocation.r_info >> 32];
        visit(reinterpret_cast<const void**>(info_.dlpi_addr + relocation.r_offset),
              strings_ + symbol.st_name, type == kLazySlot && symbol.st_shndx == SHN_UNDEF);
      }
    }
  }

 private:
  using Relocation = ElfW(Rela);
  using Symbol = ElfW(Sym);
  struct Table {
    const Relocation* begin = nullptr;
    std::size_t count = 0;
  };

  void read(const ElfW(Dyn) * entry) noexcept;
  [[nodiscard]] bool defines(std::size_t symbol, const char* name) const noexcept;
  [[nodiscard]] bool is_in_gnu_hash(const char* name) const noexcept;
  [[nodiscard]] bool is_in_hash(const char* name) const noexcept;

  // Some loaders add where a library was loaded to these addresses, others leave them.
  template <class T>
  [[nodiscard]] const T* at(std::uintptr_t address) const noexcept {
    return reinterpret_cast<const T*>(address < info_.dlpi_addr ? info_.dlpi_addr + address
                                                                : address);
  }

  const dl_phdr_info& info_;
  const Symbol* symbols_ = nullptr;
  const char* strings_ = nullptr;
  const std::uint32_t* gnu_hash_ = nullptr;
  const std::uint32_t* hash_ = nullptr;
  Table at_once_, lazy_;
  std::uintptr_t sealed_begin_ = 0, sealed_end_ = 0;
};

}  // namespace whence::base
