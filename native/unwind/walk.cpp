// walk.cpp: see walk.h.
#include "unwind/walk.h"

#include "base/libraries_generation.h"
#include "base/safe_copy.h"
#include "unwind/frame_pointer.h"
#include "unwind/table.h"

namespace whence::unwind {

RuleCache detail::rules;

namespace {

Statistics counted;

// Kernels for aarch64 have had no table for what a signal handler returns to since 5.8; everybody
// knows it by its instructions, which are therefore never changed.
[[nodiscard]] bool is_signal_return([[maybe_unused]] Address pc) noexcept {
#if defined(__aarch64__)
  constexpr std::uint32_t kReturn[] = {0xD2801168, 0xD4000001};  // mov x8, 139; svc 0
  std::uint32_t code[2];
  return pc % sizeof code[0] == 0 && base::safe_copy(pc, code, sizeof code) &&
         code[0] == kReturn[0] && code[1] == kReturn[1];
#else
  return false;
#endif
}

}  // namespace

Statistics& statistics() noexcept {
  return counted;
}

bool prepare() noexcept {
  static_cast<void>(base::libraries_generation());
  static_cast<void>(stack_range(0));  // of the thread that the process began with, as a rule
  return detail::rules.prepare();
}

// Code that says nothing of itself is left by its frame pointer, if it is certain to have one.
// Outside libraries, code may be replaced at any time: only its name is remembered.
Known detail::learn(const Registers& at, Address pc, std::uint64_t generation) noexcept {
  const Known before = rules.find(pc, generation);
  const Kind known = Rule::unpack(before.rule).kind;
  if (known != Kind::none && known != Kind::unlisted) return before;  // by another thread, just now
  const bool is_new = known == Kind::none;
  if (is_new) counted.misses.fetch_add(1, std::memory_order_relaxed);
  const auto library = is_new ? find_library(pc) : std::nullopt;
  Rule rule = library.has_value() ? find_rule(*library, pc) : Rule{Kind::unsupported};
  if (rule.kind == Kind::unsupported && is_signal_return(at.pc)) rule = {Kind::signal};
  const Registers inside = {pc, at.sp, at.fp, at.link};
  if (rule.kind == Kind::unsupported && has_frame_pointer(inside)) rule = kByFramePointer;
  if (is_new && rule.kind == Kind::unsupported) {
    counted.unsupported.fetch_add(1, std::memory_order_relaxed);
  }
  const Rule kept = library.has_value() ? rule : Rule{Kind::unlisted};
  if (is_new) rules.keep(pc, generation, {kept.packed(), 0});
  return {rule.packed(), before.name};
}

bool detail::read_elsewhere(Address at, Address& value) noexcept {
  return at % sizeof value == 0 && base::safe_copy(at, &value, sizeof value);
}

// To what a signal has interrupted.
[[nodiscard]] static bool leave_signal(Registers& at) noexcept {
#if defined(__x86_64__)
  // ucontext: flags, link, stack, then the registers in the order of <sys/ucontext.h>.
  constexpr Address kRegisters = 40;
  constexpr unsigned kFp = 10, kSp = 15, kPc = 16, kLinkPlace = kPc;
#elif defined(__aarch64__)
  // siginfo, then ucontext with x0 to x30, sp and pc.
  constexpr Address kRegisters = 128 + 176 + 8;
  constexpr unsigned kFp = 29, kLinkPlace = 30, kSp = 31, kPc = 32;
#endif
  Address saved[kPc + 1];
  if (!base::safe_copy(at.sp + kRegisters, saved, sizeof saved)) return false;
  at = {saved[kPc], saved[kSp], saved[kFp], saved[kLinkPlace]};
  return at.pc != 0;
}

bool detail::Steps::leave_other(const Rule& rule, End& end) noexcept {
  end = rule.kind == Kind::outermost ? End::outermost
        : rule.kind == Kind::signal  ? End::cut
                                     : End::unknown;
  if (rule.kind != Kind::signal || !leave_signal(at)) return false;
  go_on_from(at, true);
  return true;
}

void detail::Steps::go_on_from(const Registers& registers, bool is_exact) noexcept {
  at = registers;
  exact = is_exact;
  if (!on_stack(at.sp)) enter(stack_range(at.sp));
}

// Registers that came from memory may say anything: a guard page is part of a stack, too. But
// where a stack is at all, it is there up to its end.
void detail::Steps::enter(const StackRange& piece) noexcept {
  Address word;
  whole_ = piece;
  stack_ = piece.from(at.sp);
  if (!stack_.has(at.sp) || !read_elsewhere(at.sp & ~(sizeof word - 1), word)) stack_ = {};
}

// A frame that ends where it began, or further in, ends the walk: it would go round in circles. But
// other pieces of stack may lie anywhere.
bool detail::Steps::change_stack(Address begin) noexcept {
  const StackRange next = stack_range(at.sp - 1);
  const bool same = next.begin == whole_.begin && next.end == whole_.end;
  if (same && at.sp <= begin) return false;
  enter(next);
  return true;
}

}  // namespace whence::unwind
