// symbols.cpp: see symbols.h.
#include "elf/symbols.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>

namespace whence::elf {
namespace {

constexpr std::uint64_t kAtOnce = 1 << 15;  // symbols that are read together
constexpr std::uint64_t kEndOfAll = std::numeric_limits<std::uint64_t>::max();

// The section that a symbol is in, or nullptr.
const Elf64_Shdr* section_at(const Image& image, std::uint16_t place) noexcept {
  if (place == SHN_UNDEF || place >= SHN_LORESERVE) return nullptr;
  return place < image.sections().size() ? &image.sections()[place] : nullptr;
}

bool is_code(const Elf64_Shdr* section) noexcept {
  return section != nullptr && (section->sh_flags & SHF_EXECINSTR) != 0;
}

std::uint64_t end_of(std::uint64_t start, std::uint64_t size) noexcept {
  return size <= kEndOfAll - start ? start + size : kEndOfAll;
}

auto plainness(const std::string& name) noexcept {
  const std::size_t underscores = std::min(name.find_first_not_of('_'), name.size());
  return std::tuple(underscores, name.size(), std::string_view(name));
}

}  // namespace

// What counts more than how plain a name is, the better the lower.
unsigned Symbols::kind_of(const Symbol& symbol) noexcept {
  return (symbol.is_sized ? 0u : 4u) | (symbol.is_local ? 2u : 0u) | (symbol.is_dynamic ? 1u : 0u);
}

Problem Symbols::read(const Image& image) {
  for (const std::uint32_t type : {std::uint32_t{SHT_SYMTAB}, std::uint32_t{SHT_DYNSYM}}) {
    const Problem problem = read_table(image, type);
    if (problem != Problem::none) return problem;
  }
  finish(image, functions_);
  finish(image, labels_);
  return Problem::none;
}

Problem Symbols::read_table(const Image& image, std::uint32_t type) {
  const Elf64_Shdr* table = image.section_of_type(type);
  if (table == nullptr) return Problem::none;
  if (table->sh_entsize != sizeof(Elf64_Sym) || table->sh_link >= image.sections().size()) {
    return Problem::damaged;
  }
  const Elf64_Shdr& names = image.sections()[table->sh_link];
  if (names.sh_type != SHT_STRTAB) return Problem::damaged;
  const std::uint64_t count = table->sh_size / sizeof(Elf64_Sym);
  if (count > kMostSymbols) return Problem::too_large;
  if (!image.bytes().has(table->sh_offset, table->sh_size) ||
      !image.bytes().has(names.sh_offset, names.sh_size)) {
    return Problem::cut;
  }
  const bool is_dynamic = type == SHT_DYNSYM;
  names_[is_dynamic] = {names.sh_offset, names.sh_size};
  std::vector<Elf64_Sym> some;
  for (std::uint64_t done = 0; done < count; done += some.size()) {
    const Problem problem = image.bytes().read(table->sh_offset + done * sizeof(Elf64_Sym),
                                               std::min(kAtOnce, count - done), some);
    if (problem != Problem::none) return problem;
    for (const Elf64_Sym& symbol : some) add(image, symbol, is_dynamic);
  }
  return Problem::none;
}

void Symbols::add(const Image& image, const Elf64_Sym& symbol, bool is_dynamic) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  const bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
  const Elf64_Shdr* section = section_at(image, symbol.st_shndx);
  if (!is_function && !(type == STT_NOTYPE && is_code(section))) return;
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= names_[is_dynamic].size) return;
  // Nothing would end it.
  if (section == nullptr && symbol.st_size == 0) return;
  Symbol added{};
  added.start = symbol.st_value;
  added.end = symbol.st_size != 0 ? end_of(symbol.st_value, symbol.st_size) : 0;
  added.name = symbol.st_name;
  added.section = section != nullptr ? symbol.st_shndx : std::uint16_t{SHN_UNDEF};
  added.is_local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL;
  added.is_sized = symbol.st_size != 0;
  added.is_dynamic = is_dynamic;
  (is_function ? functions_ : labels_).push_back(added);
}

// Sorts them, and finds the ends of those that have no size.
void Symbols::finish(const Image& image, std::vector<Symbol>& symbols) {
  std::sort(symbols.begin(), symbols.end(), [](const Symbol& one, const Symbol& other) {
    const auto key = [](const Symbol& symbol) {
      return std::tuple(symbol.start, kind_of(symbol), ~symbol.end, symbol.name, symbol.section);
    };
    return key(one) < key(other);
  });
  symbols.shrink_to_fit();
  std::uint64_t next = kEndOfAll;  // where the next one starts that starts elsewhere
  for (std::size_t i = symbols.size(); i-- != 0;) {
    if (i + 1 != symbols.size() && symbols[i + 1].start != symbols[i].start) {
      next = symbols[i + 1].start;
    }
    if (symbols[i].is_sized) continue;
    const Elf64_Shdr& section = image.sections()[symbols[i].section];
    symbols[i].end = std::min(next, end_of(section.sh_addr, section.sh_size));
  }
}

// Those that start last at or before the address, and nothing else.
std::span<const Symbols::Symbol> Symbols::at(const std::vector<Symbol>& symbols,
                                             std::uint64_t address) const noexcept {
  const auto after = std::upper_bound(
      symbols.begin(), symbols.end(), address,
      [](std::uint64_t wanted, const Symbol& symbol) { return wanted < symbol.start; });
  if (after == symbols.begin()) return {};
  const auto first = std::lower_bound(
      symbols.begin(), after, (after - 1)->start,
      [](const Symbol& symbol, std::uint64_t wanted) { return symbol.start < wanted; });
  return {first, after};
}

std::optional<Found> Symbols::find(const Image& image, std::uint64_t address) const {
  std::uint64_t nearest = 0;  // where the function starts that a label must not come before
  for (const std::vector<Symbol>* symbols : {&functions_, &labels_}) {
    std::span<const Symbol> here = at(*symbols, address);
    if (here.empty() || here.front().start < nearest) continue;
    nearest = here.front().start;
    const bool is_sized = here.front().is_sized;
    // Equals lie together, and of those the ones that reach farthest come first.
    while (!here.empty() && here.front().is_sized == is_sized) {
      const Symbol& first = here.front();
      const auto past = std::partition_point(
          here.begin(), here.end(),
          [&first](const Symbol& symbol) { return kind_of(symbol) == kind_of(first); });
      const std::span<const Symbol> aliases(here.begin(), past);
      std::string name =
          best_name(image, aliases.first(std::min(kMostAliases, aliases.size())), address);
      if (!name.empty()) return Found{std::move(name), nearest};
      here = {past, here.end()};
    }
  }
  return std::nullopt;
}

std::string Symbols::best_name(const Image& image, std::span<const Symbol> aliases,
                               std::uint64_t address) const {
  std::string best;
  for (const Symbol& symbol : aliases) {
    if (address >= symbol.end) continue;
    std::string name = name_of(image, symbol);
    if (name.empty()) continue;
    if (best.empty() || plainness(name) < plainness(best)) best = std::move(name);
  }
  return best;
}

std::string Symbols::name_of(const Image& image, const Symbol& symbol) const {
  const Names& names = names_[symbol.is_dynamic];
  std::string name;
  // Most names are short: the first reading is all.
  for (const std::size_t most : {std::size_t{256}, kLongestName}) {
    name.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, names.size - symbol.name)));
    name.resize(image.bytes().read_some(names.offset + symbol.name, name.data(), name.size()));
    const std::size_t end = name.find('\0');
    if (end == std::string::npos && name.size() == most) continue;
    if (end == std::string::npos) return {};  // of a table that was cut
    name.resize(end);
    break;
  }
  // The version of an exported name; marks of data among code ("$d", "$x.1") are no names.
  if (const std::size_t version = name.find('@'); version != std::string::npos && version != 0) {
    name.resize(version);
  }
  if (name.starts_with('$')) name.clear();
  return name;
}

}  // namespace whence::elf
