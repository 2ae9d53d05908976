// notes.cpp: see notes.h.
#include "elf/notes.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace whence::elf {

std::string build_id_in(const Bytes& bytes, std::uint64_t offset, std::uint64_t size,
                        std::uint64_t alignment) {
  std::vector<char> notes(static_cast<std::size_t>(std::min(size, kMostNotes)));
  notes.resize(bytes.read_some(offset, notes.data(), notes.size()));
  const std::uint64_t step = alignment == 8 ? 8 : 4;
  const auto aligned = [step](std::uint64_t at) { return (at + step - 1) / step * step; };
  // Sizes have 32 bits, so sums of them cannot be more than 64 can hold.
  for (std::uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr head;
    std::memcpy(&head, notes.data() + at, sizeof head);
    const std::uint64_t name = at + sizeof head;
    const std::uint64_t content = aligned(name + head.n_namesz);
    if (content + head.n_descsz > notes.size()) break;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_descsz != 0 && head.n_descsz <= kLongestBuildId &&
        std::string_view(notes.data() + name, head.n_namesz) == std::string_view("GNU", 4)) {
      return {notes.data() + content, head.n_descsz};
    }
    at = aligned(content + head.n_descsz);
  }
  return {};
}

}  // namespace whence::elf
