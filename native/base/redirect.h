// redirect.h: functions that loaded libraries call by name, led through functions of ours.
//
// Threads: any; the loader lets one in at a time. Takes the loader's lock on its list of libraries,
// and no other.
// Allocates: pages, for the time of a call. Fails by: leaving a call as it is, which is counted.
//
// A library calls functions of others through slots, one for each function, that the loader fills
// in. redirect() changes every slot that leads to what a name means, and restore() changes it back;
// of the slots nothing is remembered in between, so libraries may come and go.
//
//     libfoo.so   call *slot  ------------------>  malloc
//                        \---- redirected ------>  ours  ---- this library's own slot -->  malloc
//
// Which function a name means is what it means here: this library's own slots are looked up, and
// never changed. Others may change them, so it is asked for each time. A library that has another
// function of that name to itself is left alone, and so is one that might, as far as slots are
// concerned that it has not used yet. So are pointers to functions in data, which programs compare
// and hand on, and the loader itself.
//
// Most slots lie in pages that the loader makes read-only when it has filled them in. They are made
// writable for a moment. Pages of that kind that are all still writable belong to a library that is
// being loaded just now: those are left for the next time. Unless it was there before this one: the
// loader loads one after the other, and tools that do the same as we leave pages writable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace whence::base {

struct Redirection {
  const char* name;
  const void* through;  // what is called instead
  // What the name means; nullptr: it is not known, and left alone.
  std::atomic<const void*> meaning = nullptr;
};

// Fills in what the names mean. False: slots of this machine are not known here.
[[nodiscard]] bool find_meanings(std::span<Redirection> redirections) noexcept;

// Libraries that need not be looked at again: the first so many, as long as none is unloaded. A
// program loads hundreds, one after the other, and has tens of thousands of slots. Guarded by the
// loader's lock.
struct Settled {
  std::size_t libraries = 0;
  std::uint64_t unloaded = 0;  // so far, when there were these
};

struct Redirected {
  std::uint32_t slots;      // changed
  std::uint32_t refused;    // could not be changed
  std::uint32_t passed_by;  // restore(): that did not lead through our functions any more
  bool complete;            // else some library was being loaded
};
// `wanted` is asked when the loader has let us in: cleared before restore(), it stays at that.
[[nodiscard]] Redirected redirect(std::span<const Redirection> redirections,
                                  const std::atomic<bool>& wanted, Settled& settled) noexcept;
Redirected restore(std::span<const Redirection> redirections, Settled& settled) noexcept;

}  // namespace whence::base
