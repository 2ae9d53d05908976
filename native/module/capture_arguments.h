// capture_arguments.h: the keyword arguments of whence.capture(), read without making a tuple or a
// dict.
//
// Threads: holders of the GIL. Allocates: never. Fails by: false with Python's error set.
#pragma once

#include <Python.h>

#include <cstdint>

#include "module/state.h"
#include "stacks/capture.h"

namespace whence::module {

struct CaptureArguments {
  std::uint32_t skip = 0;
  std::uint32_t limit = stacks::kNoLimit;
  PyObject* origin = nullptr;  // borrowed
  bool native = false;
};

[[nodiscard]] bool read_arguments(const State& state, PyObject* const* args, Py_ssize_t nargs,
                                  PyObject* names, CaptureArguments& out) noexcept;

}  // namespace whence::module
