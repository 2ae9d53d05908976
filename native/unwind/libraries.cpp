// libraries.cpp: see libraries.h.
#include "unwind/libraries.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/safe_copy.h"

namespace whence::unwind {
namespace {

#ifndef DLFO_STRUCT_HAS_EH_DBASE
[[nodiscard]] bool contains(const dl_phdr_info& library, Address pc) noexcept {
  for (std::size_t i = 0; i < library.dlpi_phnum; ++i) {
    const auto& part = library.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && pc - library.dlpi_addr - part.p_vaddr < part.p_memsz) return true;
  }
  return false;
}

// visit(library) for the one that `pc` is in. Under the loader's lock.
template <class Visit>
bool visit_library(Address pc, Visit&& visit) noexcept {
  struct Search {
    Address pc;
    Visit& visit;
  } search{pc, visit};
  const auto look = [](dl_phdr_info* library, std::size_t, void* given) noexcept {
    auto& wanted = *static_cast<Search*>(given);
    if (!contains(*library, wanted.pc)) return 0;
    wanted.visit(*library);
    return 1;
  };
  return dl_iterate_phdr(look, &search) != 0;
}

[[nodiscard]] Library library_of(const dl_phdr_info& info) noexcept {
  Library library{UINTPTR_MAX, 0, 0};
  for (std::size_t i = 0; i < info.dlpi_phnum; ++i) {
    const auto& part = info.dlpi_phdr[i];
    const Address begin = info.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) library.table = begin;
    if (part.p_type != PT_LOAD) continue;
    library.begin = std::min<Address>(library.begin, begin);
    library.end = std::max<Address>(library.end, begin + part.p_memsz);
  }
  return library;
}
#endif

// What is known of a library before anything of it is read. It may be on its way out: from here on
// everything is copied in a way that cannot fault, and no lock is held.
struct Loaded {
  Address bias = 0;
  Address name = 0;     // a string, 0 if it has none
  Address headers = 0;  // of the program, 0 if they are not known
  std::size_t header_count = 0;
};

template <class T>
[[nodiscard]] bool copy(Address from, T& to) noexcept {
  return base::safe_copy(from, &to, sizeof to);
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// By what the loader publishes for unwinders, without its lock: another thread may fork while it is
// held here, and then nobody could load a library in the child.
[[nodiscard]] bool find_loaded(Address pc, Loaded& loaded) noexcept {
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(pc), &found) != 0) return false;
  const auto begin = reinterpret_cast<Address>(found.dlfo_map_start);
  link_map map;
  if (!copy(reinterpret_cast<Address>(found.dlfo_link_map), map)) return false;
  loaded.bias = map.l_addr;
  loaded.name = reinterpret_cast<Address>(map.l_name);
  ElfW(Ehdr) header;
  if (copy(begin, header) && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
      header.e_phentsize == sizeof(ElfW(Phdr))) {
    loaded.headers = begin + header.e_phoff;
    loaded.header_count = header.e_phnum;
  }
  return true;
}
#else
[[nodiscard]] bool find_loaded(Address pc, Loaded& loaded) noexcept {
  return visit_library(pc, [&](const dl_phdr_info& library) noexcept {
    loaded = {library.dlpi_addr, reinterpret_cast<Address>(library.dlpi_name),
              reinterpret_cast<Address>(library.dlpi_phdr), library.dlpi_phnum};
  });
}
#endif

[[nodiscard]] bool take_build_id(Address note, std::size_t size,
                                 Description& description) noexcept {
  constexpr std::size_t kAlignment = 4, kMostNotes = 64;
  const auto padded = [](std::size_t n) { return (n + kAlignment - 1) & ~(kAlignment - 1); };
  for (std::size_t i = 0; i < kMostNotes; ++i) {
    ElfW(Nhdr) header;
    if (size < sizeof header || !copy(note, header)) return false;
    const std::size_t name = padded(header.n_namesz), body = padded(header.n_descsz);
    if (size - sizeof header < name || size - sizeof header - name < body) return false;
    const Address bytes = note + sizeof header;
    char owner[4];
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == sizeof owner && copy(bytes, owner) &&
        std::memcmp(owner, "GNU", sizeof owner) == 0) {
      const std::size_t length =
          std::min<std::size_t>(header.n_descsz, Description::kLongestBuildId);
      if (!base::safe_copy(bytes + name, description.build_id, length)) return false;
      description.build_id_size = length;
      return true;
    }
    note = bytes + name + body;
    size -= sizeof header + name + body;
  }
  return false;
}

void take_build_id(const Loaded& loaded, Description& description) noexcept {
  constexpr std::size_t kMostHeaders = 256;
  const std::size_t count = std::min(loaded.header_count, kMostHeaders);
  for (std::size_t i = 0; loaded.headers != 0 && i < count; ++i) {
    ElfW(Phdr) part;
    if (!copy(loaded.headers + i * sizeof part, part)) return;
    if (part.p_type == PT_NOTE &&
        take_build_id(loaded.bias + part.p_vaddr, part.p_memsz, description)) {
      return;
    }
  }
}

// A string that ends, piece by piece, so that nothing behind its end needs to be there.
[[nodiscard]] bool take_name(Address name, char (&path)[Description::kLongestPath]) noexcept {
  constexpr std::size_t kPiece = 64;
  std::size_t size = 0;
  while (size + 1 < sizeof path) {
    const Address at = name + size;
    const std::size_t piece = std::min(kPiece - at % kPiece, sizeof path - 1 - size);
    if (!base::safe_copy(at, path + size, piece)) break;
    if (std::memchr(path + size, 0, piece) != nullptr) return path[0] != 0;
    size += piece;
  }
  path[0] = 0;
  return false;
}

// The program itself has no name.
void take_path(const Loaded& loaded, Description& description) noexcept {
  auto& path = description.path;
  if (loaded.name != 0 && take_name(loaded.name, path)) return;
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
}

}  // namespace

std::optional<Library> find_library(Address pc) noexcept {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
  dl_find_object found;
  if (_dl_find_object(reinterpret_cast<void*>(pc), &found) != 0) return std::nullopt;
  return Library{reinterpret_cast<Address>(found.dlfo_map_start),
                 reinterpret_cast<Address>(found.dlfo_map_end),
                 reinterpret_cast<Address>(found.dlfo_eh_frame)};
#else
  std::optional<Library> library;
  visit_library(pc, [&](const dl_phdr_info& info) noexcept { library = library_of(info); });
  return library;
#endif
}

bool is_in_library(Address pc, std::string_view name) noexcept {
  Loaded loaded;
  if (!find_loaded(pc, loaded) || loaded.name == 0) return false;
  std::size_t same = 0;  // characters since the last slash that are those of the name
  for (Address at = loaded.name; at - loaded.name < Description::kLongestPath;) {
    constexpr std::size_t kPiece = 64;
    char piece[kPiece];
    const std::size_t size = kPiece - at % kPiece;
    if (!base::safe_copy(at, piece, size)) return false;
    for (const char c : std::string_view(piece, size)) {
      if (c == 0) return same == name.size();
      if (c == '/') {
        same = 0;
      } else if (same < name.size()) {
        same = c == name[same] ? same + 1 : name.size() + 1;
      }
    }
    at += size;
  }
  return false;
}

bool describe_library(Address pc, Description& description) noexcept {
  Loaded loaded;
  if (!find_loaded(pc, loaded)) return false;
  description.bias = loaded.bias;
  take_path(loaded, description);
  take_build_id(loaded, description);
  return true;
}

}  // namespace whence::unwind
