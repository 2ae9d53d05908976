// loaded_library.cpp: see loaded_library.h.
#include "base/loaded_library.h"

#include <elf.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>

namespace whence::base {

LoadedLibrary::LoadedLibrary(const dl_phdr_info& info) noexcept : info_(info) {
  for (std::size_t i = 0; i < info.dlpi_phnum; ++i) {
    const auto& part = info.dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC) {
      read(reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + part.p_vaddr));
    } else if (part.p_type == PT_GNU_RELRO) {
      const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
      const std::uintptr_t begin = info.dlpi_addr + part.p_vaddr;
      sealed_begin_ = begin & ~(page - 1);
      sealed_end_ = (begin + part.p_memsz) & ~(page - 1);
    }
  }
}

bool LoadedLibrary::contains(const void* address) const noexcept {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - info_.dlpi_addr;
  for (std::size_t i = 0; i < info_.dlpi_phnum; ++i) {
    const auto& part = info_.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && offset - part.p_vaddr < part.p_memsz) return true;
  }
  return false;
}

bool LoadedLibrary::is_loader() const noexcept {
  return info_.dlpi_addr != 0 && info_.dlpi_addr == getauxval(AT_BASE);
}

void LoadedLibrary::read(const ElfW(Dyn) * entry) noexcept {
  for (; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB: symbols_ = at<Symbol>(entry->d_un.d_ptr); break;
      case DT_STRTAB: strings_ = at<char>(entry->d_un.d_ptr); break;
      case DT_GNU_HASH: gnu_hash_ = at<std::uint32_t>(entry->d_un.d_ptr); break;
      case DT_HASH: hash_ = at<std::uint32_t>(entry->d_un.d_ptr); break;
      case DT_RELA: at_once_.begin = at<Relocation>(entry->d_un.d_ptr); break;
      case DT_RELASZ: at_once_.count = entry->d_un.d_val / sizeof(Relocation); break;
      case DT_JMPREL: lazy_.begin = at<Relocation>(entry->d_un.d_ptr); break;
      case DT_PLTRELSZ: lazy_.count = entry->d_un.d_val / sizeof(Relocation); break;
      default: break;
    }
  }
  if (at_once_.begin == nullptr) at_once_.count = 0;
  if (lazy_.begin == nullptr) lazy_.count = 0;
}

bool LoadedLibrary::may_define(const char* name) const noexcept {
  if (symbols_ == nullptr || strings_ == nullptr) return false;
  if (gnu_hash_ != nullptr) return is_in_gnu_hash(name);
  return hash_ == nullptr || is_in_hash(name);
}

bool LoadedLibrary::defines(std::size_t symbol, const char* name) const noexcept {
  return symbols_[symbol].st_shndx != SHN_UNDEF &&
         std::strcmp(strings_ + symbols_[symbol].st_name, name) == 0;
}

// Four numbers, a filter that is not needed here, the first symbol of each bucket, and the hash of
// each symbol, whose lowest bit says that it is the last of its bucket.
bool LoadedLibrary::is_in_gnu_hash(const char* name) const noexcept {
  constexpr std::size_t kNumbers = 4;
  const std::uint32_t bucket_count = gnu_hash_[0], first = gnu_hash_[1], filter = gnu_hash_[2];
  if (bucket_count == 0) return false;
  const std::uint32_t* buckets = gnu_hash_ + kNumbers + filter * (sizeof(ElfW(Addr)) / 4);
  const std::uint32_t* hashes = buckets + bucket_count;
  std::uint32_t hash = 5381;
  for (const char* c = name; *c != 0; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
  const std::uint32_t begin = buckets[hash % bucket_count];
  if (begin < first) return false;
  for (std::uint32_t symbol = begin;; ++symbol) {
    const std::uint32_t found = hashes[symbol - first];
    if ((found | 1) == (hash | 1) && defines(symbol, name)) return true;
    if ((found & 1) != 0) return false;
  }
}

// Two numbers, the first symbol of each bucket, and for each symbol the next.
bool LoadedLibrary::is_in_hash(const char* name) const noexcept {
  const std::uint32_t bucket_count = hash_[0], symbol_count = hash_[1];
  if (bucket_count == 0) return false;
  const std::uint32_t* buckets = hash_ + 2;
  const std::uint32_t* next = buckets + bucket_count;
  std::uint32_t hash = 0;
  for (const char* c = name; *c != 0; ++c) {
    hash = (hash << 4) + static_cast<unsigned char>(*c);
    const std::uint32_t high = hash & 0xF0000000;
    hash = (hash ^ high >> 24) & ~high;
  }
  std::uint32_t symbol = buckets[hash % bucket_count];
  for (std::uint32_t i = 0; symbol != 0 && i < symbol_count; ++i) {
    if (defines(symbol, name)) return true;
    symbol = next[symbol];
  }
  return false;
}

}  // namespace whence::base
