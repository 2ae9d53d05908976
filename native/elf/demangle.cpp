// demangle.cpp: see demangle.h.
#include "elf/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "elf/mangled_size.h"

namespace whence::elf {
namespace {

struct Free {
  void operator()(char* text) const noexcept { std::free(text); }
};

bool is_hexadecimal(std::string_view text) noexcept {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A C++ function has a signature after the last E, so this cannot be one.
bool is_rust(std::string_view name) noexcept {
  constexpr std::size_t kHash = 16;
  if (!name.starts_with("_ZN") || name.size() < kHash + 4 || !name.ends_with('E')) return false;
  name.remove_suffix(1);
  const std::string_view hash = name.substr(name.size() - kHash);
  name.remove_suffix(kHash);
  return name.ends_with("17h") && is_hexadecimal(hash);
}

// What rustc writes for letters that names of C cannot have.
std::string_view unescaped(std::string_view code) noexcept {
  constexpr std::string_view kCodes[][2] = {
      {"SP", "@"},  {"BP", "*"},  {"RF", "&"},  {"LT", "<"},   {"GT", ">"},
      {"LP", "("},  {"RP", ")"},  {"C", ","},   {"u20", " "},  {"u27", "'"},
      {"u3d", "="}, {"u5b", "["}, {"u5d", "]"}, {"u7b", "{"},  {"u7d", "}"},
      {"u7e", "~"}, {"u3b", ";"}, {"u2b", "+"}, {"u22", "\""},
  };
  for (const auto& [written, meant] : kCodes) {
    if (code == written) return meant;
  }
  return {};
}

// "_$LT$a..B$u20$as$u20$C$GT$::f::h0123456789abcdef" to "<a::B as C>::f".
std::string as_rust(std::string_view name) {
  name = name.substr(0, name.rfind("::h"));
  std::string out;
  for (std::size_t at = 0; at < name.size();) {
    const std::string_view left = name.substr(at);
    const std::size_t end = left[0] == '$' ? left.find('$', 1) : std::string_view::npos;
    const std::string_view meant =
        end != std::string_view::npos ? unescaped(left.substr(1, end - 1)) : std::string_view();
    if (left.starts_with("_$") && (at == 0 || name[at - 1] == ':')) {
      ++at;
    } else if (left.starts_with("..")) {
      out += "::";
      at += 2;
    } else if (!meant.empty()) {
      out += meant;
      at += end + 1;
    } else {
      out += left[0];
      ++at;
    }
  }
  return out;
}

std::string shortened(std::string_view name) {
  if (name.size() <= kLongestName) return std::string(name);
  return std::string(name.substr(0, kLongestName)) + "...";
}

}  // namespace

std::string demangle(std::string_view name) {
  std::string_view mangled = name;
  // The compiler's mark of a copy, which __cxa_demangle shows for C++.
  if (const std::size_t copy = name.rfind(".llvm."); copy != std::string_view::npos) {
    if (is_rust(name.substr(0, copy))) mangled = name.substr(0, copy);
  }
  if (!mangled.starts_with("_Z") || mangled.size() > kLongestMangled ||
      mangled.find('\0') != std::string_view::npos || most_demangled(mangled) > kLongestDemangled) {
    return shortened(name);
  }
  int status = 0;
  const std::unique_ptr<char, Free> text(
      abi::__cxa_demangle(std::string(mangled).c_str(), nullptr, nullptr, &status));
  if (status != 0 || text == nullptr) return shortened(name);
  return shortened(is_rust(mangled) ? as_rust(text.get()) : std::string_view(text.get()));
}

std::vector<std::optional<Found>> find_demangled(const Symbols& symbols, const Image& image,
                                                 std::span<const std::uint64_t> addresses) {
  std::vector<std::optional<Found>> found;
  found.reserve(addresses.size());
  for (const std::uint64_t address : addresses) {
    found.push_back(symbols.find(image, address));
    if (found.back().has_value()) found.back()->name = demangle(found.back()->name);
  }
  return found;
}

}  // namespace whence::elf
