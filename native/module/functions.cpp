// functions.cpp: see functions.h. Arguments in, results out; src/whence/_core.pyi says what each
// does.
#include "module/functions.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "cpython/layout.h"
#include "cpython/self_test.h"
#include "cpython/state_slot.h"
#include "cpython/thread.h"
#include "module/capture_arguments.h"
#include "module/frame_objects.h"
#include "module/stack_type.h"
#include "stacks/capture.h"
#include "stacks/json.h"

namespace whence::module {
namespace {

using cpython::Ref;

PyObject* capture(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  const State& state = state_of(module);
  CaptureArguments arguments;
  if (nargs != 0 || names != nullptr) [[unlikely]] {
    if (!read_arguments(state, args, nargs, names, arguments)) return nullptr;
  }
  PyThreadState* thread = state.is_main ? cpython::calling_state() : nullptr;
  const stacks::StackId id = arguments.native
                                 ? stacks::capture_mixed({thread, thread != nullptr}, nullptr,
                                                         arguments.skip, arguments.limit)
                                 : stacks::capture(thread, arguments.skip, arguments.limit);
  return new_stack(state.stack_type, id, arguments.origin);
}

// The i-th stack of a list, borrowed, or nullptr with an error set.
PyObject* stack_in(const State& state, PyObject* list, Py_ssize_t i) noexcept {
  PyObject* item = PyList_GET_ITEM(list, i);
  if (Py_IS_TYPE(item, state.stack_type)) return item;
  return PyErr_Format(PyExc_TypeError, "item %zd must be a whence.Stack, not %.100s", i,
                      Py_TYPE(item)->tp_name);
}

PyObject* resolve(PyObject* module, PyObject* const* args, Py_ssize_t nargs) try {
  const State& state = state_of(module);
  if (nargs != 1 && nargs != 2) return PyErr_Format(PyExc_TypeError, "resolve() takes 1 or 2");
  PyObject* list = args[0];
  PyObject* name_native = nargs == 2 && args[1] != Py_None ? args[1] : nullptr;
  if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "resolve() takes a list");
  FrameBatch batch(state, name_native);
  Ref<> result(PyList_New(0));
  for (Py_ssize_t i = 0; result && i < PyList_GET_SIZE(list); ++i) {
    PyObject* stack = stack_in(state, list, i);
    const Ref<> frames = stack != nullptr ? batch.frames_of(stack) : Ref<>();
    if (!frames || PyList_Append(result.get(), frames.get()) < 0) return nullptr;
  }
  return result.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

bool append_json_frames(std::string& out, const State& state, PyObject* frames) {
  const Ref<> sequence(PySequence_Fast(frames, "frames must be a sequence of whence.Frame"));
  if (!sequence) return false;
  out += '[';
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i) {
    PyObject* frame = PySequence_Fast_GET_ITEM(sequence.get(), i);
    base::Location place;
    if (!check_frame(state, frame, place)) return false;
    if (i != 0) out += ", ";
    append_json_frame(out, frame, place);
  }
  out += ']';
  return true;
}

// A JSON array with one item for each item of a list, written by append(i).
template <class Append>
PyObject* json_array(PyObject* list, Append&& append) try {
  if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "a list is needed");
  std::string out = "[";
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    if (i != 0) out += ", ";
    if (!append(out, i)) return nullptr;
  }
  out += ']';
  return PyUnicode_FromStringAndSize(out.data(), static_cast<Py_ssize_t>(out.size()));
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* to_json(PyObject* module, PyObject* list) {
  const State& state = state_of(module);
  return json_array(list, [&](std::string& out, Py_ssize_t i) {
    PyObject* stack = stack_in(state, list, i);
    if (stack == nullptr) return false;
    if (as_stack(stack)->detached)
      return append_json_frames(out, state, as_detached(stack)->frames);
    stacks::append_json_stack(out, as_stack(stack)->id);
    return true;
  });
}

PyObject* frames_to_json(PyObject* module, PyObject* list) {
  const State& state = state_of(module);
  return json_array(list, [&](std::string& out, Py_ssize_t i) {
    return append_json_frames(out, state, PyList_GET_ITEM(list, i));
  });
}

PyObject* restore(PyObject* module, PyObject* args) {
  const State& state = state_of(module);
  PyObject *frames, *origin;
  if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &frames, &origin)) return nullptr;
  if (origin != Py_None && !Py_IS_TYPE(origin, state.stack_type)) {
    return PyErr_Format(PyExc_TypeError, "origin must be a Stack or None");
  }
  return new_detached_stack(state, frames, origin != Py_None ? origin : nullptr);
}

PyObject* statistics(PyObject* module, PyObject*) {
  const auto table = stacks::store().stacks.statistics();
  const auto codes = stacks::store().codes.statistics();
  const bool fast = stacks::walk_in_use() == stacks::Walk::fast;
  return Py_BuildValue("{sI sI sK sn sI sK sK sn ss sz}", "stacks", table.nodes, "stacks_cap",
                       table.cap, "stacks_truncated", table.truncated, "stacks_bytes",
                       static_cast<Py_ssize_t>(table.bytes), "codes", codes.codes, "codes_dead",
                       codes.deaths, "codes_lost", codes.lost, "codes_bytes",
                       static_cast<Py_ssize_t>(codes.bytes), "walk", fast ? "fast" : "public",
                       "walk_reason", fast ? nullptr : state_of(module).walk_reason);
}

PyObject* use_walk(PyObject* module, PyObject* arg) {
  const char* walk = PyUnicode_AsUTF8(arg);
  if (walk == nullptr) return nullptr;
  const bool fast = std::strcmp(walk, "fast") == 0;
  if (!fast && std::strcmp(walk, "public") != 0) {
    return PyErr_Format(PyExc_ValueError, "the walk is 'fast' or 'public', not %R", arg);
  }
  if (!fast) stacks::use_public_walk();
  const char* reason = fast ? stacks::use_fast_walk_if_trusted() : "asked for";
  if (PyErr_Occurred()) return nullptr;
  state_of(module).walk_reason = reason;
  return PyBool_FromLong(stacks::walk_in_use() == stacks::Walk::fast);
}

PyObject* test_layout(PyObject*, PyObject* args) {
  Py_ssize_t executable, previous, instruction, owner, stack_top, places;
  if (!PyArg_ParseTuple(args, "nnnnnn", &executable, &previous, &instruction, &owner, &stack_top,
                        &places)) {
    return nullptr;
  }
  cpython::FrameLayout layout = cpython::kLayout;
  layout.executable += static_cast<std::size_t>(executable);
  layout.previous += static_cast<std::size_t>(previous);
  layout.instruction += static_cast<std::size_t>(instruction);
  layout.owner += static_cast<std::size_t>(owner);
  layout.stack_top += static_cast<std::size_t>(stack_top);
  layout.places += static_cast<std::size_t>(places);
  const char* failure = cpython::self_test(layout);
  return PyErr_Occurred() ? nullptr : Py_BuildValue("z", failure);
}

PyObject* locate(PyObject*, PyObject* args) {
  PyObject* table;
  int first_line, offset;
  if (!PyArg_ParseTuple(args, "Sii", &table, &first_line, &offset)) return nullptr;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(table));
  const base::Location place =
      base::locate({bytes, static_cast<std::size_t>(PyBytes_GET_SIZE(table))}, first_line, offset);
  return Py_BuildValue("NNNN", number(place.line), number(place.end_line), number(place.column),
                       number(place.end_column));
}

PyObject* state_slot_is_known(PyObject*, PyObject*) {
  return PyBool_FromLong(cpython::state_slot_is_known());
}

PyObject* set_stacks_cap(PyObject*, PyObject* arg) {
  const unsigned long cap = PyLong_AsUnsignedLong(arg);
  if (cap == static_cast<unsigned long>(-1) && PyErr_Occurred()) return nullptr;
  stacks::store().stacks.set_cap(static_cast<std::uint32_t>(std::min(cap, 0xFFFFFFFFul)));
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef functions[] = {
    {"capture", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(capture)),
     METH_FASTCALL | METH_KEYWORDS,
     "capture($module, /, *, native=False, skip=0, limit=None, origin=None)\n--\n\n"
     "The current stack of this thread, as a Stack.\n\n"
     "skip leaves out that many innermost frames, limit keeps at most that many of the\n"
     "others, and origin is another Stack that travels with this one."},
    {"resolve", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(resolve)), METH_FASTCALL,
     "resolve($module, stacks, name_native=None, /)\n--\n\n"},
    {"to_json", to_json, METH_O, "to_json($module, stacks, /)\n--\n\n"},
    {"frames_to_json", frames_to_json, METH_O, "frames_to_json($module, frames, /)\n--\n\n"},
    {"restore", restore, METH_VARARGS, "restore($module, frames, origin, /)\n--\n\n"},
    {"statistics", statistics, METH_NOARGS, "statistics($module, /)\n--\n\n"},
    {"use_walk", use_walk, METH_O, "use_walk($module, walk, /)\n--\n\n"},
    {"test_layout", test_layout, METH_VARARGS,
     "test_layout($module, executable, previous, instruction, owner, stack_top, places, "
     "/)\n--\n\n"},
    {"locate", locate, METH_VARARGS, "locate($module, line_table, first_line, offset, /)\n--\n\n"},
    {"state_slot_is_known", state_slot_is_known, METH_NOARGS,
     "state_slot_is_known($module, /)\n--\n\n"},
    {"set_stacks_cap", set_stacks_cap, METH_O, "set_stacks_cap($module, cap, /)\n--\n\n"},
    {},
};

}  // namespace whence::module
