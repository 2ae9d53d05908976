// walk.h: the native frames of this thread, innermost first. The hot path of native stacks.
//
// Threads: any, each its own stack; also inside a signal handler, once the thread has walked
// before. Takes no lock where every row is known.
// Allocates: once in the process, by mmap; see stack_range.h for a thread's first walk.
// Fails by: saying how it ended. What cannot be unwound is counted.
//
// Budget of a frame: one look-up and two loads of the stack, about 25 instructions.
//
// Every load is checked: it lies in a stack of this thread, further out than where the walk began,
// or the kernel does it for us. A frame ends further out than it begins, or on another piece of
// stack. So a walk ends, whatever it finds, and touches nothing that is not there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "unwind/libraries.h"
#include "unwind/registers.h"
#include "unwind/rule.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_range.h"

namespace whence::unwind {

enum class End : std::uint8_t {
  outermost,  // of all frames
  visitor,    // it had seen enough
  cut,        // too deep, or a frame led nowhere
  unknown,    // nothing is said of how to leave this code
};

struct Statistics {
  std::atomic<std::uint64_t> hits, misses, truncated, unsupported;
};
[[nodiscard]] Statistics& statistics() noexcept;

// A frame: the address of an instruction in it (of the call, if it made one), and where it ends.
struct Frame {
  Address pc, sp, end;
  FrameName name;  // as the cache has it
};

inline constexpr std::size_t kDeepest = 4096;

namespace detail {
extern RuleCache rules;

[[nodiscard, gnu::cold, gnu::noinline]] Known learn(const Registers& at, Address pc,
                                                    std::uint64_t generation) noexcept;
[[nodiscard, gnu::cold, gnu::noinline]] bool read_elsewhere(Address at, Address& value) noexcept;
[[nodiscard, gnu::always_inline]] inline Address load(Address at) noexcept {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  Address value;  // other functions' frames, which a sanitizer would take for an overflow
#if defined(__x86_64__)
  asm("movq (%1), %0" : "=r"(value) : "r"(at) : "memory");
#else
  asm("ldr %0, [%1]" : "=r"(value) : "r"(at) : "memory");
#endif
  return value;
#else
  return *reinterpret_cast<const Address*>(at);
#endif
}

[[nodiscard, gnu::always_inline]] inline bool read(const StackRange& stack, Address at,
                                                   Address& value) noexcept {
  if (at - stack.begin < stack.end - stack.begin && at % sizeof value == 0) [[likely]] {
    value = load(at);
    return true;
  }
  return read_elsewhere(at, value);
}

// Where a frame ends, and the words of the stack that were read to leave it; 0: none.
struct Left {
  Address end = 0;
  Address link_at = 0, fp_at = 0;
};

// The caller's registers. False: it leads nowhere.
[[nodiscard, gnu::always_inline]] inline bool leave_frame(const Rule& rule, const StackRange& stack,
                                                          Registers& at, Left& left) noexcept {
  constexpr auto kWord = static_cast<std::int64_t>(sizeof(Address));
  const auto place = [](Address from, std::int16_t words) {
    return from + static_cast<Address>(words * kWord);
  };
  left.end = (rule.base == Base::sp ? at.sp : at.fp) + static_cast<Address>(std::int64_t{rule.cfa});
  if (rule.indirect && !read(stack, left.end, left.end)) [[unlikely]]
    return false;
  Address caller = at.link;
  if (rule.kind == Kind::frame) [[likely]] {
    left.link_at = place(left.end, rule.link);
    if (!read(stack, left.link_at, caller)) return false;
  }
  if (rule.fp != 0 || rule.fp_from_fp) {
    if (rule.fp_from_fp && rule.fp == Rule::kLost) [[unlikely]] {
      at.fp = 0;  // rows that need it lead nowhere
    } else {
      left.fp_at = place(rule.fp_from_fp ? at.fp : left.end, rule.fp);
      if (!read(stack, left.fp_at, at.fp)) return false;
    }
  }
  at.pc = without_signature(caller);
  at.sp = left.end;
  return true;
}

// From one frame to the next, on whatever piece of stack that is.
class Steps {
 public:
  explicit Steps(const Registers& start, bool is_exact = true) noexcept
      : at(start), exact(is_exact), whole_(stack_range(start.sp)), stack_(whole_.from(start.sp)) {}

  Registers at;
  bool exact;  // the pc is an instruction's own, not one to return to

  // The address that the frame is known by.
  [[nodiscard, gnu::always_inline]] Address pc() const noexcept { return at.pc - (exact ? 0 : 1); }

  // Goes on to the caller; if there is none, `end` says why.
  [[nodiscard, gnu::always_inline]] bool leave(const Rule& rule, Left& left, End& end) noexcept {
    const Address begin = at.sp;
    left.end = begin;
    if (rule.kind > Kind::leaf) [[unlikely]]
      return leave_other(rule, end);
    end = End::cut;
    if (rule.kind == Kind::leaf && !exact) return false;
    if (!leave_frame(rule, stack_, at, left)) return false;
    exact = false;
    if (at.pc == 0) [[unlikely]] {
      end = End::outermost;
      return false;
    }
    if (left.end > begin && left.end <= stack_.end) [[likely]]
      return true;
    // A leaf may have no frame of its own.
    return (left.end == begin && rule.kind == Kind::leaf) || change_stack(begin);
  }

  // Is this word on the piece of stack that the frame is on?
  [[nodiscard, gnu::always_inline]] bool on_stack(Address word) const noexcept {
    return word - stack_.begin < stack_.end - stack_.begin;
  }

  // Goes on from here as if the walk had come this far.
  void go_on_from(const Registers& registers, bool is_exact) noexcept;

 private:
  [[nodiscard, gnu::cold, gnu::noinline]] bool leave_other(const Rule& rule, End& end) noexcept;
  [[nodiscard, gnu::cold, gnu::noinline]] bool change_stack(Address begin) noexcept;
  void enter(const StackRange& piece) noexcept;

  StackRange whole_;
  StackRange stack_;  // what lies further in than where the walk began may not be there
};

[[nodiscard, gnu::always_inline]] inline Known rule_of(const Steps& steps,
                                                       std::uint64_t generation) noexcept {
  const Known known = rules.find(steps.pc(), generation);
  const Kind kind = Rule::unpack(known.rule).kind;
  if (kind != Kind::none && kind != Kind::unlisted) [[likely]]
    return known;
  return learn(steps.at, steps.pc(), generation);
}

}  // namespace detail

// Once, before the first walk; not inside a signal handler. False: there is no memory.
[[nodiscard]] bool prepare() noexcept;

// visit(frame) -> go on? for each frame from `at` on.
template <class Visit>
[[nodiscard, gnu::always_inline]] inline End walk(Registers at, std::uint64_t generation,
                                                  Visit&& visit) noexcept {
  detail::Steps steps(at);
  for (std::size_t depth = 0; depth < kDeepest; ++depth) {
    const Known known = detail::rule_of(steps, generation);
    Frame frame = {steps.pc(), steps.at.sp, 0, known.name};
    detail::Left left;
    End end = End::cut;
    const bool goes_on = steps.leave(Rule::unpack(known.rule), left, end);
    frame.end = left.end;
    if (!visit(frame)) return End::visitor;
    if (!goes_on) return end;
  }
  return End::cut;
}

}  // namespace whence::unwind
