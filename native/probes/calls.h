// calls.h: calls of Python functions, as they are entered and left. The hot path of the tracer.
//
// Threads: entered() and left() on the thread that runs the frame, attached to the main
// interpreter; each thread its own frames. Starting and stopping: calls_control.h.
// Allocates: never here; the slow path maps pages, and at first sight of code uses PyMem.
// Fails by: counting the event as dropped. Nothing is raised, no exception is touched.
//
// Events are matched by frame, never by counting. A frame is entered from the one that is open
// innermost, or the slow path finds out, by walking, which frames have come and gone unseen:
//
//      open frames     entered(d, caller b)       written          open then
//      a b c           c is gone                  gone, call d     a b d
//      a b             b -> x -> d                open x, call d   a b x d
//
// Budget of an event: the clock, and about a hundred instructions: the code's entry, six compares,
// the record, one push or pop.
#pragma once

#include <Python.h>

#include <atomic>

#include "base/more_stack.h"
#include "cpython/call_events.h"
#include "cpython/frames.h"
#include "format/records/call.h"
#include "probes/call_codes.h"
#include "probes/folding.h"
#include "probes/open_frames.h"
#include "probes/tasks.h"
#include "stacks/store.h"
#include "store/write.h"

namespace whence::probes {

// What a thread keeps.
struct CallThread {
  OpenFrames open;
  std::uint32_t epoch = 0;                  // the stretch of recording that `open` is of
  std::size_t standing = 0;                 // how many frames were open when that began
  bool met = false;                         // its memory is there, and its stack is known
  bool greeting = false;                    // telling its frames
  bool ended = false;                       // the thread's destructors are running
  const cpython::Frame* passing = nullptr;  // see cpython/eval_hook.h
  base::MoreStack stack;
  Folding folding;
};

// What the recording wants. Written under the GIL, read by any thread.
struct CallOptions {
  using Number = std::atomic<std::uint32_t>;
  static constexpr std::uint32_t kOff = 0xFFFFFFFF;

  Number epoch = kOff;   // kOff: calls are not recorded. Another one after each pause
  Number mark = 1;       // of code that is recorded; 1: of none
  Number recording = 0;  // the store's generation
  Number max_depth = kOff;
  std::atomic<std::uint64_t> shortest = 0;  // ticks; calls below it are folded

  [[nodiscard, gnu::always_inline]] static std::uint32_t get(const Number& number) noexcept {
    return number.load(std::memory_order_relaxed);
  }
};

namespace detail {
// Found without a call: this module's thread-local storage is a few hundred bytes, within what the
// C library reserves for modules that are loaded late.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit CallThread call_thread;
extern CallOptions call_options;
// Called on a thread whose frames are met for the first time; nullptr: nothing is.
extern void (*on_new_thread)(PyThreadState*) noexcept;

}  // namespace detail

[[nodiscard, gnu::always_inline]] inline std::uintptr_t address_of(
    const cpython::Frame* frame) noexcept {
  return reinterpret_cast<std::uintptr_t>(frame);
}

// Is that frame the innermost open one? Then a reader takes it for the place of what comes next.
[[nodiscard]] inline bool make_place_in(const cpython::Frame* frame) noexcept {
  CallThread& self = detail::call_thread;
  if (self.epoch != CallOptions::get(detail::call_options.epoch) ||
      (self.open.top().frame & ~(kTags & ~kSilent)) != address_of(frame)) {
    return false;
  }
  self.folding.flush(CallOptions::get(detail::call_options.recording));
  return true;
}

// What tells generators, coroutines and asynchronous generators that live at one time apart.
[[nodiscard, gnu::always_inline]] inline std::uint64_t generator_number(
    const cpython::Frame* frame) noexcept {
  return address_of(frame) >> 4;
}

// Writes what tells that a frame is entered, with write(values...) for a record of each kind.
template <class Write>
[[gnu::always_inline]] inline bool write_entered(stacks::CodeId code, const cpython::Frame* frame,
                                                 bool generator, cpython::Entered how,
                                                 Write write) noexcept {
  using cpython::Entered;
  if (how == Entered::resume) {
    return write.template operator()<format::Resume>(code, generator_number(frame));
  }
  if (how == Entered::thrown) {
    return write.template operator()<format::Throw>(code, generator_number(frame));
  }
  if (generator) {
    return write.template operator()<format::GeneratorCall>(code, generator_number(frame));
  }
  return write.template operator()<format::Call>(code);
}

template <class Write>
[[gnu::always_inline]] inline bool write_left(cpython::Left how, Write write) noexcept {
  switch (how) {
    case cpython::Left::returned: return write.template operator()<format::Return>();
    case cpython::Left::yielded: return write.template operator()<format::Yield>();
    case cpython::Left::unwound: return write.template operator()<format::Unwind>();
    case cpython::Left::unstarted: return write.template operator()<format::Unstarted>();
  }
  return false;
}

// Where there is room for the record.
template <class Clock>
struct WriteIfRoom {
  template <class R, class... Values>
  [[gnu::always_inline]] bool operator()(Values... values) const noexcept {
    return store::write_if_room<R, Clock>(values...);
  }
};

// Does no coroutine await this one? Then it may be a task's.
[[nodiscard, gnu::always_inline]] inline bool is_outermost(const PyCodeObject* code,
                                                           const cpython::Frame* caller) noexcept {
  constexpr int kAwait = CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR | CO_GENERATOR;
  if ((code->co_flags & CO_COROUTINE) == 0) return false;
  caller = cpython::shown(caller);
  return caller == nullptr ||
         (cpython::code_of(cpython::executable(caller))->co_flags & kAwait) == 0;
}

[[nodiscard, gnu::always_inline]] inline bool begins_task(const cpython::Frame* frame,
                                                          const cpython::Frame* caller,
                                                          const PyCodeObject* code, bool generator,
                                                          cpython::Entered how) noexcept {
  if (how == cpython::Entered::resume || !generator) return false;
  // A task that is cancelled before it ran is thrown into: that is all that there is of it.
  if (how == cpython::Entered::thrown && cpython::has_begun(frame)) return false;
  return is_outermost(code, caller);
}

[[nodiscard, gnu::always_inline]] inline bool awaits_task(const cpython::Frame* caller,
                                                          const PyCodeObject* code,
                                                          cpython::Left how,
                                                          PyObject* value) noexcept {
  return how == cpython::Left::yielded && may_be_awaited(value) && is_outermost(code, caller);
}

namespace detail {

// How a fast path finds things. By calling nothing, or in any way there is.
struct Quickly {
  using Clock = base::Counter;
  static bool is_possible() noexcept { return base::uses_counter(); }
  static const stacks::CodeEntry* entry(PyCodeObject* code) noexcept {
    return stacks::CodeRegistry::entry_at_hand(code);
  }
};
struct Surely {
  using Clock = base::AnyClock;
  static bool is_possible() noexcept { return true; }
  static const stacks::CodeEntry* entry(PyCodeObject* code) noexcept {
    return stacks::CodeRegistry::known_entry(code);
  }
};

// False: nothing has happened, and the slow path is to be taken.
template <class Find>
[[gnu::always_inline]] inline bool entered_fast(const cpython::Frame* frame,
                                                const cpython::Frame* caller, PyCodeObject* code,
                                                cpython::Entered how) noexcept {
  CallThread& self = call_thread;
  const CallOptions& wanted = call_options;
  const stacks::CodeEntry* entry = Find::entry(code);
  const bool generator = cpython::is_generator(frame);
  if (!Find::is_possible() || entry == nullptr ||
      entry->mark.load(std::memory_order_relaxed) != wanted.get(wanted.mark) ||
      self.epoch != wanted.get(wanted.epoch) || self.open.full() ||
      (self.open.top().frame != address_of(caller) &&
       self.open.top().frame != address_of(cpython::shown(caller))) ||
      begins_task(frame, caller, code, generator, how) ||
      !write_entered(entry->id, frame, generator, how, WriteIfRoom<typename Find::Clock>()))
      [[unlikely]] {
    return false;
  }
  self.open.push(address_of(frame), entry->id);
  return true;
}

template <class Find>
[[gnu::always_inline]] inline bool left_fast(const cpython::Frame* frame,
                                             const cpython::Frame* caller, const PyCodeObject* code,
                                             cpython::Left how, PyObject* value) noexcept {
  CallThread& self = call_thread;
  const CallOptions& wanted = call_options;
  if (!Find::is_possible() || self.epoch != wanted.get(wanted.epoch) ||
      self.open.top().frame != address_of(frame) || awaits_task(caller, code, how, value) ||
      !write_left(how, WriteIfRoom<typename Find::Clock>())) [[unlikely]] {
    return false;
  }
  self.open.pop();
  return true;
}

}  // namespace detail

// Was there nothing more to do? If not, nothing has happened, and entered() or left() do it all.
[[nodiscard, gnu::always_inline]] inline bool entered_quickly(const cpython::Frame* frame,
                                                              const cpython::Frame* caller,
                                                              PyCodeObject* code,
                                                              cpython::Entered how) noexcept {
  return detail::entered_fast<detail::Quickly>(frame, caller, code, how);
}
[[nodiscard, gnu::always_inline]] inline bool left_quickly(const cpython::Frame* frame,
                                                           const cpython::Frame* caller,
                                                           const PyCodeObject* code,
                                                           cpython::Left how,
                                                           PyObject* value) noexcept {
  return detail::left_fast<detail::Quickly>(frame, caller, code, how, value);
}

// False: this code is not recorded.
bool entered(const cpython::Frame* frame, const cpython::Frame* caller, PyCodeObject* code,
             cpython::Entered how) noexcept;
bool left(const cpython::Frame* frame, const cpython::Frame* caller, PyCodeObject* code,
          cpython::Left how, PyObject* value) noexcept;

}  // namespace whence::probes
