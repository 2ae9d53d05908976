// symbol_chunks.cpp: see symbol_chunks.h.
#include "read/symbol_chunks.h"

#include <algorithm>
#include <span>

#include "format/records/native.h"
#include "format/records/string.h"

namespace whence::read {
namespace {

// Numbers of strings that no recorder gives.
constexpr std::uint64_t kFirstString = std::uint64_t{1} << 48;
constexpr std::size_t kLongestText = 1024;

class Payloads {
 public:
  explicit Payloads(std::size_t most) : most_(most) { begin(); }

  // encode(out) -> end, in at most `size` bytes.
  template <class Encode>
  void put(std::size_t size, Encode&& encode) {
    std::vector<std::uint8_t>* payload = &all_.back();
    if (payload->size() + size > most_) payload = begin();
    const std::size_t used = payload->size();
    payload->resize(used + size);
    std::uint8_t* out = payload->data() + used;
    payload->resize(used + static_cast<std::size_t>(encode(out) - out));
  }
  [[nodiscard]] std::vector<std::vector<std::uint8_t>> take() { return std::move(all_); }

 private:
  std::vector<std::uint8_t>* begin() {
    all_.emplace_back();
    return &all_.back();
  }

  std::vector<std::vector<std::uint8_t>> all_;
  std::size_t most_;
};

}  // namespace

std::uint64_t SymbolChunks::string(const std::string& text) {
  const auto [found, is_new] = numbers_.try_emplace(text, kFirstString + texts_.size());
  if (is_new) texts_.push_back(&found->first);
  return found->second;
}

void SymbolChunks::add(std::uint64_t module, std::uint64_t address, const std::string& name,
                       const std::string& filename, std::uint64_t line) {
  symbols_.push_back({module, address, string(name), string(filename), line});
}

std::vector<std::vector<std::uint8_t>> SymbolChunks::payloads(std::size_t most) const {
  Payloads out(most);
  out.put(format::kLongestCompact,
          [](std::uint8_t* at) { return format::SymbolsAnew::encode(at, 0); });
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(texts_[i]->data());
    const std::span text(bytes, std::min(texts_[i]->size(), kLongestText));
    out.put(text.size() + format::kLongestCompact,
            [&](std::uint8_t* at) { return format::String::encode(at, kFirstString + i, text); });
  }
  for (const Symbol& s : symbols_) {
    out.put(format::kLongestCompact, [&](std::uint8_t* at) {
      return format::Symbol::encode(at, s.module, s.address, s.name, s.filename, s.line);
    });
  }
  return out.take();
}

}  // namespace whence::read
