// module.cpp: loading _core.
//
// Threads: the importing one. Allocates: the module's state. Fails by: ImportError.
#include <Python.h>

#include "cpython/own_slot.h"
#include "cpython/ref.h"
#include "cpython/state_slot.h"
#include "cpython/thread.h"
#include "module/c_api.h"
#include "module/call_functions.h"
#include "module/domain_type.h"
#include "module/event_functions.h"
#include "module/functions.h"
#include "module/memory_functions.h"
#include "module/native_functions.h"
#include "module/reader_tables.h"
#include "module/reader_type.h"
#include "module/recorder_functions.h"
#include "module/run_functions.h"
#include "module/span_type.h"
#include "module/stack_type.h"
#include "module/state.h"
#include "module/symbol_functions.h"
#include "module/work_functions.h"
#include "session/fork.h"
#include "stacks/capture.h"
#include "stacks/store.h"

namespace whence::module {
namespace {

using cpython::Ref;

bool make_members(PyObject* module, State& state) noexcept {
  const Ref<> frame_module(PyImport_ImportModule("whence._frame"));
  if (!frame_module) return false;
  state.frame_type =
      reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(frame_module.get(), "Frame"));
  state.stack_type = make_stack_type(module);
  state.span_type = make_span_type(module);
  if (state.span_type != nullptr) state.spare_span = make_spare_span(state.span_type);
  state.reader_type = make_reader_type(module);
  state.reader_iterator_type = make_reader_iterator_type(module);
  state.skip = PyUnicode_InternFromString("skip");
  state.limit = PyUnicode_InternFromString("limit");
  state.native = PyUnicode_InternFromString("native");
  state.origin = PyUnicode_InternFromString("origin");
  if (!state.frame_type || !state.stack_type || !state.spare_span || !state.skip || !state.limit ||
      !state.native || !state.origin) {
    return false;
  }
  if (!state.reader_type || !state.reader_iterator_type) return false;
  if (!add_handle_types(module, state.handles) || !add_symbols(module)) return false;
  const Ref<PyTypeObject> domain_type(make_domain_type(module));
  const Ref<> c_api(make_c_api());
  const Ref<> system(make_system_capsule());
  return domain_type && c_api && system && PyModule_AddType(module, domain_type.get()) == 0 &&
         PyModule_AddObjectRef(module, "_c_api", c_api.get()) == 0 &&
         PyModule_AddObjectRef(module, "_system", system.get()) == 0 &&
         PyModule_AddType(module, state.reader_type) == 0 &&
         PyModule_AddType(module, state.stack_type) == 0 &&
         PyModule_AddType(module, state.span_type) == 0 &&
         PyModule_AddFunctions(module, arrow_functions) == 0 &&
         PyModule_AddFunctions(module, call_functions) == 0 &&
         PyModule_AddFunctions(module, memory_functions) == 0 &&
         PyModule_AddFunctions(module, native_functions) == 0 &&
         PyModule_AddFunctions(module, recorder_functions) == 0 &&
         PyModule_AddFunctions(module, tag_functions) == 0 &&
         PyModule_AddFunctions(module, run_functions) == 0 &&
         PyModule_AddFunctions(module, event_functions) == 0 &&
         PyModule_AddFunctions(module, work_functions) == 0 &&
         PyModule_AddFunctions(module, span_functions) == 0;
}

int execute(PyObject* module) {
  State& state = state_of(module);
  if (!make_members(module, state)) return -1;
  cpython::remember_main_interpreter();
  state.is_main = PyInterpreterState_Get() == PyInterpreterState_Main();
  if (!state.is_main) return 0;  // spans, marks and counters are the process's; captures are empty
  cpython::find_state_slot();
  cpython::find_own_slot();
  session::watch_forks();
  if (!stacks::store().codes.attach()) return -1;
  state.walk_reason = stacks::use_fast_walk_if_trusted();
  if (PyErr_Occurred()) return -1;
  return 0;
}

int traverse(PyObject* module, visitproc visit, void* arg) {
  const State& state = state_of(module);
  Py_VISIT(state.stack_type);
  Py_VISIT(state.reader_type);
  Py_VISIT(state.reader_iterator_type);
  Py_VISIT(state.frame_type);
  Py_VISIT(state.span_type);
  Py_VISIT(state.spare_span);
  Py_VISIT(state.on_long_span);
  return visit_handle_types(state.handles, visit, arg);
}

// There is no m_clear: the collector would empty a module whose functions can still be called. The
// cycle through the Stack type is broken at the type's end.
void release(void* module) {
  State& state = state_of(static_cast<PyObject*>(module));
  release_handle_types(state.handles);
  Py_CLEAR(state.stack_type);
  Py_CLEAR(state.reader_type);
  Py_CLEAR(state.reader_iterator_type);
  Py_CLEAR(state.frame_type);
  Py_CLEAR(state.spare_span);
  Py_CLEAR(state.span_type);
  Py_CLEAR(state.on_long_span);
  Py_CLEAR(state.skip);
  Py_CLEAR(state.limit);
  Py_CLEAR(state.native);
  Py_CLEAR(state.origin);
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(execute)},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "whence._core",
                          "The native core of whence. Use the names in the whence package instead.",
                          sizeof(State),
                          functions,
                          slots,
                          traverse,
                          nullptr,
                          release};

}  // namespace
}  // namespace whence::module

PyMODINIT_FUNC PyInit__core() {
  return PyModuleDef_Init(&whence::module::definition);
}
