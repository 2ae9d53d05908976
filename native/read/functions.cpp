// functions.cpp: see functions.h.
#include "read/functions.h"

#include "base/hash.h"

namespace whence::read {

std::size_t Functions::Hash::operator()(const Function& function) const noexcept {
  const IdHash hash;
  return base::mix(base::mix(hash(function.name), function.filename),
                   static_cast<std::uint64_t>(function.line) * 2 + function.native);
}

std::uint32_t Functions::find_code(std::uint64_t code) {
  constexpr std::uint64_t kNear = 1 << 16;
  const std::uint32_t number = find(code, false);
  if (code < kNear) {
    if (near_.empty()) near_.assign(kNear, kNone);
    near_[code] = number;
  }
  return number;
}

std::uint32_t Functions::find(std::uint64_t what, bool native) {
  IdMap<std::uint32_t>& known = native ? by_name_ : by_code_;
  const auto found = known.find(what);
  if (found != known.end()) return found->second;
  if (!budget_.afford(3 * kEntryCost)) return kNone;
  Function function{};  // all that are not known are one
  if (native && names_.string(what) != nullptr) {
    function = {what, 0, 0, true};
  } else if (const CodeEntry* code = native ? nullptr : names_.code(what)) {
    function.name = names_.string(code->qualname) != nullptr ? code->qualname : code->name;
    function.filename = code->filename;
    function.line = code->first_line;
  }
  const auto [place, is_new] =
      numbers_.try_emplace(function, static_cast<std::uint32_t>(all_.size()));
  if (is_new) all_.push_back(function);
  known.emplace(what, place->second);
  return place->second;
}

}  // namespace whence::read
