// image.h: what an ELF file says about itself: its build id, where it wants to lie, what it has.
//
// Threads: any; nothing changes after open(). Allocates: its section headers, 16 MB at most, and
// meanwhile their names. Fails by: Problem, and std::bad_alloc.
//
// Files for x86-64 and aarch64, of 64 bits and little-endian. Every offset and every size is held
// against the length of the file before it is used. Tables that are not needed are not looked at:
// strip and objcopy leave program headers in debug files that lead nowhere.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elf/bytes.h"

namespace whence::elf {

inline constexpr std::uint64_t kMostSections = 1 << 18;
inline constexpr std::uint64_t kMostSectionNames = 1 << 24;  // bytes of them

class Image {
 public:
  [[nodiscard]] Problem open(Bytes bytes);

  [[nodiscard]] const Bytes& bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::vector<Elf64_Shdr>& sections() const noexcept { return sections_; }
  // The first section of that type that has bytes in this file, or nullptr.
  [[nodiscard]] const Elf64_Shdr* section_of_type(std::uint32_t type) const noexcept;

  // The GNU build id as bytes; empty: it has none.
  [[nodiscard]] const std::string& build_id() const noexcept { return build_id_; }
  // The lowest address of a segment that is loaded; 0 if there is none.
  [[nodiscard]] std::uint64_t load_address() const noexcept { return load_address_; }
  // A table of all symbols: more than what is exported.
  [[nodiscard]] bool has_symbols() const noexcept { return section_of_type(SHT_SYMTAB) != nullptr; }
  [[nodiscard]] bool has_debug_info() const noexcept { return has_debug_info_; }
  // What all sections for debuggers take once they are unpacked, by what they say themselves.
  [[nodiscard]] std::uint64_t debug_size() const noexcept { return debug_size_; }
  // The name of the file with its debug info, as .gnu_debuglink has it; empty: none.
  [[nodiscard]] const std::string& debug_link() const noexcept { return debug_link_; }

 private:
  [[nodiscard]] Problem read_segments(const Elf64_Ehdr& header);
  [[nodiscard]] Problem read_sections(const Elf64_Ehdr& header);
  [[nodiscard]] Problem look_at_names(std::uint32_t names_section);
  void look_at(const Elf64_Shdr& section, std::string_view name);
  void find_build_id();

  Bytes bytes_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
  std::string build_id_;
  std::string debug_link_;
  std::uint64_t load_address_ = 0;
  std::uint64_t debug_size_ = 0;
  bool has_debug_info_ = false;
};

}  // namespace whence::elf
