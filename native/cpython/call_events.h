// call_events.h: what a source of call events tells, and whom.
//
// Threads, allocation, failure: constants, and a contract.
//
// A source calls a sink, a class with these static functions, on the thread that runs the frame,
// attached to its interpreter. They are inlined into the source's callbacks: this is the hot path.
//
//   bool entered(const Frame* frame, const Frame* caller, PyCodeObject* code, Entered how)
//        false: the code is of no interest, as long as this recording lasts.
//   bool left(const Frame* frame, const Frame* caller, PyCodeObject* code, Left how,
//             PyObject* value)
//        `value`: what it returns or yields; nullptr if it is left by an exception.
//   void c_called(const Frame* frame, PyObject* callable)
//   void c_left(const Frame* frame, PyObject* callable, bool by_exception)
//   void raised(const Frame* frame, PyObject* exception, PyObject* traceback, offset)
//        in each frame that an exception passes through.
//   void handled(const Frame* frame, PyObject* exception, offset)
//
// `caller` is the frame below, whatever it is; it need not be one that the sink has heard of.
#pragma once

#include <Python.h>

#include <cstdint>

namespace whence::cpython {

enum class Entered : std::uint8_t { call, resume, thrown };
enum class Left : std::uint8_t { returned, yielded, unwound, unstarted };

// What is wanted beside calls and returns.
struct CallEvents {
  bool c_calls = false;
  bool exceptions = false;
};

}  // namespace whence::cpython
