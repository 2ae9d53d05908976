// exceptions.h: exceptions, where they are raised and where they are handled.
//
// Threads: the one that raises, attached. Allocates: at first sight of a type's name.
// Fails by: leaving the event out. The exception itself is not touched.
//
// The interpreter tells of an exception in each frame that it passes through. Only the first is
// where it is raised: the others are told of the same exception, one caller after the other.
#pragma once

#include <Python.h>

#include <cstdint>

#include "cpython/frames.h"

namespace whence::probes {

// `traceback`: of the frames that it has passed through, this one first.
void exception_seen(const cpython::Frame* frame, PyObject* exception, PyObject* traceback,
                    std::int64_t offset) noexcept;
void exception_handled(const cpython::Frame* frame, PyObject* exception,
                       std::int64_t offset) noexcept;

}  // namespace whence::probes
