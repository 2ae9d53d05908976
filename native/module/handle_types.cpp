// handle_types.cpp: see handle_types.h.
#include "module/handle_types.h"

#include "cpython/ref.h"

namespace whence::module {

bool add_handle_types(PyObject* module, HandleTypes& types) noexcept {
  constexpr const char* kNames[] = {"range", "kind", "stack"};
  for (int i = 0; i < 3; ++i) {
    if ((types.names[i] = PyUnicode_InternFromString(kNames[i])) == nullptr) return false;
  }
  types.range = make_range_type(module);
  types.call = make_call_type(module);
  types.snapshot = make_snapshot_type(module);
  types.columns = make_columns_type(module);
  const cpython::Ref<PyTypeObject> recorder(make_recorder_type(module));
  for (PyTypeObject* type :
       {types.range, types.call, types.snapshot, types.columns, recorder.get()}) {
    if (type == nullptr || PyModule_AddType(module, type) < 0) return false;
  }
  return PyModule_AddFunctions(module, handle_functions) == 0;
}

int visit_handle_types(const HandleTypes& types, visitproc visit, void* arg) noexcept {
  Py_VISIT(types.range);
  Py_VISIT(types.call);
  Py_VISIT(types.snapshot);
  Py_VISIT(types.columns);
  return 0;
}

void release_handle_types(HandleTypes& types) noexcept {
  Py_CLEAR(types.range);
  Py_CLEAR(types.call);
  Py_CLEAR(types.snapshot);
  Py_CLEAR(types.columns);
  for (PyObject*& name : types.names) Py_CLEAR(name);
}

}  // namespace whence::module
