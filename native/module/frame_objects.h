// frame_objects.h: whence.Frame objects from resolved frames, and back.
//
// Threads: holders of the GIL. Allocates: Python objects, and std containers for a batch.
// Fails by: nullptr or false with Python's error set; std::bad_alloc from a batch.
#pragma once

#include <Python.h>

#include <string>
#include <string_view>
#include <unordered_map>

#include "cpython/ref.h"
#include "module/state.h"
#include "stacks/resolve.h"

namespace whence::module {

// Resolves many stacks, each distinct frame and string once, each distinct stack into one list.
class FrameBatch {
 public:
  // `name_native(path, build id, address)` gives a list of frames for an address in a module, those
  // of inlined functions first; without it there is one that says where it is.
  explicit FrameBatch(const State& state, PyObject* name_native = nullptr) noexcept
      : state_(state), name_native_(name_native) {}

  // A list of Frame, innermost first: the same list object for the same stack.
  [[nodiscard]] cpython::Ref<> frames_of(PyObject* stack);

 private:
  [[nodiscard]] cpython::Ref<> live_frames(stacks::StackId id);
  [[nodiscard]] PyObject* frames_at(stacks::StackId id);  // borrowed: a list
  [[nodiscard]] PyObject* text(std::string_view utf8);    // borrowed
  [[nodiscard]] PyObject* path(std::string_view bytes);   // the same of a library
  [[nodiscard]] PyObject* make_frame(const stacks::ResolvedFrame& resolved);
  [[nodiscard]] PyObject* make_frames(stacks::StackId id);

  const State& state_;
  PyObject* name_native_;
  std::unordered_map<std::uint64_t, cpython::Ref<>>
      lists_;  // by stack id, or by address of a detached stack
  std::unordered_map<std::uint64_t, cpython::Ref<>> frames_;  // lists, by code id and offset
  std::unordered_map<std::string_view, cpython::Ref<>> texts_, paths_;
};

// An int, or None for base::Location::kUnknown.
[[nodiscard]] PyObject* number(std::int32_t value) noexcept;

// A list of the frames that were captured: those of generated code's origin are left out.
[[nodiscard]] PyObject* captured_frames(const State& state, PyObject* stack) noexcept;

// Is this a whence.Frame with fields of the right types? If so, its place in the source.
[[nodiscard]] bool check_frame(const State& state, PyObject* frame, base::Location& place) noexcept;

// The content hash of a stack with one more frame, given as a checked whence.Frame; generated
// frames add nothing.
[[nodiscard]] std::uint64_t hash_step(std::uint64_t outer, PyObject* frame, base::Location place);
[[nodiscard]] Py_hash_t hash_from(std::uint64_t hash) noexcept;

// Appends a checked whence.Frame.
void append_json_frame(std::string& out, PyObject* frame, base::Location place);

}  // namespace whence::module
