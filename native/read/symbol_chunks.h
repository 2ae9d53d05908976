// symbol_chunks.h: names of native frames that were looked up later, as metadata for a recording.
//
// Threads: an instance belongs to one. Allocates: what it holds. Fails by: std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace whence::read {

class SymbolChunks {
 public:
  // What is at an address of a module; several of one address are inlined, innermost first.
  void add(std::uint64_t module, std::uint64_t address, const std::string& name,
           const std::string& filename, std::uint64_t line);

  [[nodiscard]] bool empty() const noexcept { return symbols_.empty(); }

  // The payloads of chunks of at most that many bytes. They say first that whatever was known
  // before is forgotten.
  [[nodiscard]] std::vector<std::vector<std::uint8_t>> payloads(std::size_t most) const;

 private:
  struct Symbol {
    std::uint64_t module, address, name, filename, line;
  };

  [[nodiscard]] std::uint64_t string(const std::string& text);

  std::vector<Symbol> symbols_;
  std::vector<const std::string*> texts_;  // by number
  std::unordered_map<std::string, std::uint64_t> numbers_;
};

}  // namespace whence::read
