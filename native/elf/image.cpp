// image.cpp: see image.h.
#include "elf/image.h"

#include <errno.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "elf/notes.h"

namespace whence::elf {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they are");

constexpr std::size_t kLongestDebugLink = 255;  // of a file's name, on Linux

Problem check(const Elf64_Ehdr& header) noexcept {
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Problem::other_format;
  }
  if (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64) {
    return Problem::other_machine;
  }
  return header.e_type == ET_EXEC || header.e_type == ET_DYN ? Problem::none : Problem::other_type;
}

bool has_bytes(const Elf64_Shdr& section) noexcept {
  return section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL && section.sh_size != 0;
}

// The sum, or the largest number.
std::uint64_t add(std::uint64_t one, std::uint64_t other) noexcept {
  const std::uint64_t sum = one + other;
  return sum < one ? std::numeric_limits<std::uint64_t>::max() : sum;
}

// How long a section is once it is unpacked. Somebody will allocate that much: so a packed section
// without a header counts as longer than anything.
std::uint64_t unpacked_size(const Bytes& bytes, const Elf64_Shdr& section, bool old_way) noexcept {
  if (old_way) {  // .zdebug_*: "ZLIB" and the size, big-endian
    std::uint8_t head[12];
    if (bytes.read(section.sh_offset, head, sizeof head) != Problem::none) return ~0ull;
    if (std::memcmp(head, "ZLIB", 4) != 0) return section.sh_size;
    std::uint64_t size = 0;
    for (int i = 4; i < 12; ++i) size = size << 8 | head[i];
    return std::max<std::uint64_t>(size, section.sh_size);
  }
  if ((section.sh_flags & SHF_COMPRESSED) == 0) return section.sh_size;
  Elf64_Chdr head;
  if (bytes.read(section.sh_offset, &head, sizeof head) != Problem::none) return ~0ull;
  return std::max<std::uint64_t>(head.ch_size, section.sh_size);
}

}  // namespace

Problem Image::open(Bytes bytes) {
  bytes_ = std::move(bytes);
  Elf64_Ehdr header{};
  const std::size_t got = bytes_.read_some(0, &header, sizeof header);
  if (got == 0 && errno != 0) return Problem::not_read;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return Problem::no_elf;
  if (got < sizeof header) return Problem::cut;
  Problem problem = check(header);
  if (problem == Problem::none) problem = read_segments(header);
  if (problem == Problem::none) problem = read_sections(header);
  if (problem == Problem::none) find_build_id();
  return problem;
}

Problem Image::read_segments(const Elf64_Ehdr& header) {
  if (header.e_phnum == 0 || header.e_phoff == 0) return Problem::none;
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return Problem::damaged;
  // PN_XNUM says that there are more: no program or library has, only cores of processes.
  const Problem problem = bytes_.read(header.e_phoff, header.e_phnum, segments_);
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  bool any = false;
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD) continue;
    any = true;
    lowest = std::min<std::uint64_t>(lowest, segment.p_vaddr);
  }
  if (any) load_address_ = lowest;
  return problem;
}

Problem Image::read_sections(const Elf64_Ehdr& header) {
  if (header.e_shoff == 0) return Problem::none;
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return Problem::damaged;
  // What does not fit into the header's 16 bits is in the first section, which has no other use.
  Elf64_Shdr first;
  Problem problem = bytes_.read(header.e_shoff, &first, sizeof first);
  if (problem != Problem::none) return problem;
  const std::uint64_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
  if (count > kMostSections) return Problem::too_large;
  problem = bytes_.read(header.e_shoff, count, sections_);
  if (problem != Problem::none) return problem;
  const std::uint32_t names = header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first.sh_link;
  return look_at_names(names);
}

Problem Image::look_at_names(std::uint32_t names_section) {
  std::vector<char> names;
  if (names_section != SHN_UNDEF) {
    if (names_section >= sections_.size()) return Problem::damaged;
    const Elf64_Shdr& section = sections_[names_section];
    if (section.sh_size > kMostSectionNames) return Problem::too_large;
    if (has_bytes(section)) {
      const Problem problem = bytes_.read(section.sh_offset, section.sh_size, names);
      if (problem != Problem::none) return problem;
    }
  }
  names.push_back('\0');
  for (const Elf64_Shdr& section : sections_) {
    if (!has_bytes(section)) continue;
    look_at(section, section.sh_name < names.size() ? names.data() + section.sh_name : "");
  }
  return Problem::none;
}

void Image::look_at(const Elf64_Shdr& section, std::string_view name) {
  const bool old_way = name.starts_with(".zdebug");
  if (old_way || name.starts_with(".debug") || (section.sh_flags & SHF_COMPRESSED) != 0) {
    debug_size_ = add(debug_size_, unpacked_size(bytes_, section, old_way));
  }
  if (name == ".debug_info" || name == ".zdebug_info") has_debug_info_ = true;
  if (name == ".gnu_debuglink" && debug_link_.empty()) {
    char text[kLongestDebugLink + 1];
    const auto size = std::min<std::uint64_t>(section.sh_size, sizeof text);
    const std::size_t got = bytes_.read_some(section.sh_offset, text, size);
    const std::size_t end = std::string_view(text, got).find('\0');
    if (end != std::string_view::npos) debug_link_.assign(text, end);
  }
}

const Elf64_Shdr* Image::section_of_type(std::uint32_t type) const noexcept {
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type == type && has_bytes(section)) return &section;
  }
  return nullptr;
}

// Sections first: in debug files the segments' places are those of another file.
void Image::find_build_id() {
  int places = 0;
  const auto look_in = [&](std::uint64_t offset, std::uint64_t size, std::uint64_t alignment) {
    if (!build_id_.empty() || ++places > kMostNotePlaces) return;
    build_id_ = build_id_in(bytes_, offset, size, alignment);
  };
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type != SHT_NOTE) continue;
    look_in(section.sh_offset, section.sh_size, section.sh_addralign);
  }
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_NOTE) continue;
    look_in(segment.p_offset, segment.p_filesz, segment.p_align);
  }
}

}  // namespace whence::elf
