// mangled_size.cpp: see mangled_size.h.
//
// One pass over the name, without the grammar's details. Open groups are on a stack:
//
//   chains   N..E L..E             what is in them belongs together
//   lists    I..E J..E F..E Z..E   template arguments, packs, signatures: types beside one another
//
// A reference stands for something that ended before: for one element of a list, or for the
// beginning of a chain. So it is no longer than the longest of these so far (`largest_`), and that
// is what it costs. Elements are told apart only where that is certain; what is taken for one
// element while it is two makes the result larger, never smaller.
//
// A name with anything that this does not know, expressions above all, is refused: not even the C++
// library knows all of it. Its demangler of 2022 never returns from "_Z1fIXsr1eC".
#include "elf/mangled_size.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace whence::elf {
namespace {

constexpr std::uint64_t kTooLong = kLongestDemangled + 1;
constexpr std::uint64_t kWord = 24;           // of one letter: "unsigned long long"
constexpr std::uint64_t kStandardName = 120;  // of "Ss": std::basic_string<char, ...>
constexpr std::string_view kBuiltin = "vwbcahstijlmxynofdegz";
constexpr std::string_view kBuiltinAfterD = "acdefhinsu";
constexpr std::string_view kQualifiers = "PROKVr";

bool is_digit(char letter) noexcept {
  return letter >= '0' && letter <= '9';
}
bool is_number(char letter) noexcept {
  return is_digit(letter) || (letter >= 'A' && letter <= 'Z');
}

std::uint64_t product(std::uint64_t one, std::uint64_t other) noexcept {
  return std::min(one * other, kTooLong);  // of two that are at most kTooLong
}

class Measure {
 public:
  explicit Measure(std::string_view text) noexcept : text_(text) {}

  std::uint64_t run() {
    groups_.push_back({'_'});
    skip_what();
    while (at_ < text_.size() && text_[at_] != '.' && total() < kTooLong) {
      if (!step()) return kTooLong;
    }
    // ".cold" and the like is shown as it is, with a word for each point.
    return std::min(total() + (text_.size() - at_) * kWord, kTooLong);
  }

 private:
  struct Group {
    char kind;
    bool has_name = false;  // there was a core before
    bool has_core = false;  // the element is one, but template arguments may follow
    bool is_one = false;    // all that follows is one element
    std::uint64_t sum = 0;
    std::uint64_t element = 0;
    std::uint64_t times = 1;  // what follows in the element is written that often
  };

  Group& group() noexcept { return groups_.back(); }
  bool in_chain() noexcept { return group().kind == 'N' || group().kind == 'L'; }
  // It is a function: a name, and its signature.
  bool has_function() noexcept {
    return group().kind == '_' || group().kind == 'Z' || group().kind == 'Q';
  }
  char letter(std::size_t ahead = 0) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  std::uint64_t total() const noexcept { return std::min(total_, kTooLong); }

  void spend(std::uint64_t length) noexcept {
    Group& here = group();
    length = product(std::min(length, kTooLong), here.times);
    total_ -= here.sum;
    here.sum = std::min(here.sum + length, kTooLong);
    total_ += here.sum;
    here.element = std::min(here.element + length, kTooLong);
    largest_ = std::max(largest_, here.element);
  }

  // Before what can only be the beginning of an element, if the one before has ended.
  void begin() noexcept {
    Group& here = group();
    if (!here.has_core || here.is_one || in_chain()) return;
    here.has_core = false;
    here.element = 0;
    here.times = 1;
  }

  bool core(std::size_t letters, std::uint64_t length) noexcept {
    begin();
    spend(length);
    group().has_core = group().has_name = true;
    at_ += letters;
    return true;
  }

  bool prefix(std::size_t letters) noexcept {
    begin();
    spend(letters * kWord);
    at_ += letters;
    return true;
  }

  bool open(char kind) {
    if (kind != 'I') begin();
    spend(kWord);
    groups_.push_back({kind});
    ++at_;
    return true;
  }

  bool close() noexcept {
    if (groups_.size() == 1) return false;
    const Group closed = group();
    groups_.pop_back();
    total_ -= closed.sum;
    spend(closed.sum + kWord);
    ++at_;
    // Something in the scope of a function follows its signature.
    group().has_core = closed.kind != 'Z';
    group().has_name = true;
    if (closed.kind == 'Z' && letter() == 'd') return false;  // in a default argument: "d1_"
    return closed.kind != 'U' || number(0);
  }

  // Digits and "_", after some letters: what tells equals apart.
  bool number(std::size_t letters) noexcept {
    for (at_ += letters; is_digit(letter());) ++at_;
    spend(kWord);
    return letter() == '_' && ++at_ != 0;
  }

  // "_1" and "__12_", after the name of something in a function.
  bool discriminator() noexcept {
    if (letter(1) == '_') return number(2);
    for (++at_; is_digit(letter());) ++at_;
    return true;
  }

  // "B5cxx11": belongs to the name before.
  bool tag() noexcept {
    ++at_;
    const std::size_t length = digits();
    if (length > text_.size() - at_) return false;
    spend(length + kWord);
    at_ += length;
    return true;
  }

  std::size_t digits() noexcept {
    std::size_t number = 0;
    for (; is_digit(letter()); ++at_) {
      number = std::min(number * 10 + static_cast<std::size_t>(letter() - '0'), text_.size() + 1);
    }
    return number;
  }

  bool source_name() noexcept {
    const std::size_t length = digits();
    return length <= text_.size() - at_ && core(length, length + kWord);
  }

  // "S_", "S1A_", "T_", "T0_".
  bool reference() noexcept {
    const bool is_parameter = letter() == 'T';
    std::size_t letters = 1;
    while (is_digit(letter(letters)) || (!is_parameter && is_number(letter(letters)))) ++letters;
    return letter(letters) == '_' && core(letters + 1, largest_ + kWord);
  }

  // In a literal, after its type: the value.
  bool value() noexcept {
    while (is_digit(letter()) || letter() == 'n') {
      spend(kWord);
      ++at_;
    }
    return letter() == 'E' && close();
  }

  // False for what is not known.
  bool step() {
    const char first = letter();
    if (group().kind == 'L' && group().has_core) return value();
    if (first == 'E') return close();
    if (first == 'v' && is_digit(letter(1)) && can_be_operator()) return false;  // a vendor's
    if (is_digit(first)) return source_name();
    if (first == 'I' || first == 'J' || first == 'N' || first == 'F') return open(first);
    if (first == 'Z' && !in_chain()) return open(first);
    if (kQualifiers.find(first) != std::string_view::npos) return prefix(1);
    if (first == 'T') return reference();
    if (first == 'S') return standard_or_reference();
    if (first == 'U' && letter(1) == 'l') return ++at_, open('U');
    if (first == 'X' && !in_chain()) return expression();
    if (group().kind == 'X' && first >= 'a' && first <= 'z') return in_expression();
    if (first == 'L') return literal();
    if (first == 'A' && !in_chain()) return array();
    if (first == 'M' && !in_chain()) return group().is_one = prefix(1);  // a class, and a type
    if (first == 'D' && letter(1) == 'p') return pack();
    if (first == 'B' && is_digit(letter(1))) return tag();
    if (first == '_' && at_ + 1 < text_.size()) return discriminator();
    if ((has_function() || group().kind == 'N') && is_assignment()) return prefix(2);
    if (in_chain() && group().kind == 'N') return in_name();
    if (first == 'D') {
      return kBuiltinAfterD.find(letter(1)) != std::string_view::npos && core(2, kWord);
    }
    if (kBuiltin.find(first) != std::string_view::npos) return core(1, kWord);
    // The name of an operator, of which nothing before it is a part.
    return groups_.size() == 1 && first >= 'a' && first <= 'z' && core(1, kWord);
  }

  bool standard_or_reference() noexcept {
    switch (letter(1)) {
      case 't': return prefix(2);
      case 'a':
      case 'b':
      case 'd':
      case 'i':
      case 'o':
      case 's': return core(2, kStandardName);
      default: return reference();
    }
  }

  // "Li5E", "L3day5E", "L_Z3runvE"; but "L3day" is a name that others cannot see.
  bool literal() {
    if (in_chain() || has_function()) return is_digit(letter(1)) && prefix(1);
    if (letter(1) != '_') return open('L');
    if (letter(2) != 'Z') return false;
    at_ += 2;
    return open('Q');
  }

  // "XadL_Z3runvEE", "Xsr3oneIT_E5valueE" and a few words more: the expressions that names are
  // full of.
  bool expression() {
    open('X');
    group().is_one = true;
    return true;
  }

  bool in_expression() noexcept {
    constexpr std::string_view kWords[] = {"ad", "sr", "nt", "aa", "oo"};
    for (const std::string_view word : kWords) {
      if (text_.substr(at_).starts_with(word)) return prefix(2);
    }
    return false;
  }

  bool array() noexcept {
    std::size_t letters = 1;
    while (is_digit(letter(letters))) ++letters;
    return letter(letters) == '_' && prefix(letters + 1);
  }

  // Before the name: it is something that belongs to it, as "TV", or a way to call it, as "Thn24_"
  // or "Tv0_n24_".
  void skip_what() noexcept {
    constexpr std::string_view kKinds[] = {"TV", "TT", "TI", "TS", "TW", "TH", "GV", "GTt", "GTn"};
    for (const std::string_view kind : kKinds) {
      if (!text_.starts_with(kind)) continue;
      at_ += kind.size();
      spend(kStandardName);
      return;
    }
    if (letter() != 'T' || (letter(1) != 'h' && letter(1) != 'v')) return;
    int numbers = letter(1) == 'v' ? 2 : 1;
    for (at_ += 2; numbers != 0; --numbers) {
      if (letter() == 'n') ++at_;
      while (is_digit(letter())) ++at_;
      if (letter() == '_') ++at_;
    }
    spend(kStandardName);
  }

  // What follows is written once for each member of a pack, which are fewer than letters.
  bool pack() noexcept {
    prefix(2);
    group().times = product(group().times, text_.size());
    return true;
  }

  bool can_be_operator() noexcept {
    return group().kind == 'N' || (has_function() && !group().has_name);
  }

  // "pL" is operator+=.
  bool is_assignment() const noexcept {
    constexpr std::string_view kOperators[] = {"pL", "mI", "mL", "dV", "rM", "aN",
                                               "oR", "eO", "lS", "rS", "aS"};
    return std::find(std::begin(kOperators), std::end(kOperators), text_.substr(at_, 2)) !=
           std::end(kOperators);
  }

  // Between N and E: constructors, destructors, operators.
  bool in_name() noexcept {
    const char first = letter();
    if ((first == 'C' || first == 'D') && is_digit(letter(1))) return core(2, text_.size());
    return first >= 'a' && first <= 'z' && prefix(1);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Group> groups_;
  std::uint64_t largest_ = 1;
  std::uint64_t total_ = 0;  // of all open groups; each is at most kTooLong
};

}  // namespace

std::uint64_t most_demangled(std::string_view mangled) {
  if (mangled.starts_with("_Z")) mangled.remove_prefix(2);
  return Measure(mangled).run();
}

}  // namespace whence::elf
