// symbols.h: which function an address of an ELF file belongs to.
//
// Threads: any; nothing changes after read(). Allocates: 24 bytes for each function, 384 MB at
// most for each table, and the names that are asked for. Fails by: Problem, and std::bad_alloc.
//
// The index holds where functions are; names stay in the file, where those of a large library take
// hundreds of megabytes, and are read when they are asked for. A name that is no longer there then
// is none.
//
//     start       end                 Sorted by where they start; one that has no size ends where
//       |--- f ---|                   the next one starts or its section ends. Functions first:
//       |-- alias --|   |- g -|       labels (no type, in code) count only where there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "elf/image.h"

namespace whence::elf {

inline constexpr std::uint64_t kMostSymbols = 1 << 24;  // in one table
inline constexpr std::size_t kLongestName = 1 << 14;    // what is longer is cut
inline constexpr std::size_t kMostAliases = 16;         // of one function that are compared

struct Found {
  std::string name;  // mangled, as the file has it, but without a version ("@@GLIBC_2.14")
  std::uint64_t start;
};

class Symbols {
 public:
  // Those of .symtab and of .dynsym, as far as there are any.
  [[nodiscard]] Problem read(const Image& image);

  [[nodiscard]] std::size_t size() const noexcept { return functions_.size() + labels_.size(); }
  // By the nearest function that starts at or before the address, if it is not past its end. Of
  // several names that start there: one with a size before others, one that others can see before
  // a local one, one of .symtab before one of .dynsym; then the plainest: fewest underscores in
  // front, shortest, first in the alphabet.
  [[nodiscard]] std::optional<Found> find(const Image& image, std::uint64_t address) const;

 private:
  struct Symbol {
    std::uint64_t start;
    std::uint64_t end;      // past the last byte; while there are only starts: 0 if it has no size
    std::uint32_t name;     // where in its table of names
    std::uint16_t section;  // 0: not told
    bool is_local : 1;
    bool is_sized : 1;
    bool is_dynamic : 1;  // from .dynsym
  };
  static_assert(sizeof(Symbol) == 24);
  struct Names {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };

  static unsigned kind_of(const Symbol& symbol) noexcept;
  [[nodiscard]] Problem read_table(const Image& image, std::uint32_t type);
  void add(const Image& image, const Elf64_Sym& symbol, bool is_dynamic);
  static void finish(const Image& image, std::vector<Symbol>& symbols);
  [[nodiscard]] std::span<const Symbol> at(const std::vector<Symbol>& symbols,
                                           std::uint64_t address) const noexcept;
  [[nodiscard]] std::string name_of(const Image& image, const Symbol& symbol) const;
  [[nodiscard]] std::string best_name(const Image& image, std::span<const Symbol> aliases,
                                      std::uint64_t address) const;

  std::vector<Symbol> functions_;
  std::vector<Symbol> labels_;
  Names names_[2];  // of .symtab, of .dynsym
};

}  // namespace whence::elf
