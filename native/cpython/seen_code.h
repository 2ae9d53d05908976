// seen_code.h: code that sys.monitoring has to have seen before an exception passes it.
//
// Threads: holders of the GIL. Allocates: as CPython does. Fails by: nothing is shown, where all
// tool ids are taken.
//
// When a tool begins, CPython looks at the code of all frames on the chains of threads. 3.15.0
// takes for granted that it has then seen whatever an exception passes, and crashes where it has
// not: in frames that were out of sight, as those below call_alone() and those of greenlets are.
// To ask for no events in that code is enough to have it seen.
#pragma once

#include <Python.h>

#include "cpython/pending.h"

namespace whence::cpython {

class SeenCode {
 public:
#if PY_VERSION_HEX >= 0x030F0000
  static constexpr bool kNeeded = true;
  SeenCode() noexcept;
  ~SeenCode();
  void see(PyCodeObject* code) noexcept;
#else
  static constexpr bool kNeeded = false;
  SeenCode() noexcept = default;
  void see(PyCodeObject*) noexcept {}
#endif
  SeenCode(const SeenCode&) = delete;
  SeenCode& operator=(const SeenCode&) = delete;

#if PY_VERSION_HEX >= 0x030F0000
 private:
  PendingAside aside_;
  int tool_id_ = -1;  // held only for as long as this lives
#endif
};

}  // namespace whence::cpython
