// seen_code.cpp: see seen_code.h. Empty below 3.15.
#include "cpython/seen_code.h"

#if PY_VERSION_HEX >= 0x030F0000
#include "cpython/ref.h"

namespace whence::cpython {
namespace {

constexpr int kToolIds = 6;

PyObject* monitoring() noexcept {
  return PySys_GetObject("monitoring");
}

}  // namespace

SeenCode::SeenCode() noexcept {
  for (int id = kToolIds - 1; id >= 0 && monitoring() != nullptr && tool_id_ < 0; --id) {
    const Ref<> owner(PyObject_CallMethod(monitoring(), "get_tool", "i", id));
    if (owner.get() != Py_None) continue;
    if (!Ref<>(PyObject_CallMethod(monitoring(), "use_tool_id", "is", id, "whence"))) break;
    tool_id_ = id;
  }
  PyErr_Clear();
}

SeenCode::~SeenCode() {
  if (tool_id_ < 0) return;
  if (!Ref<>(PyObject_CallMethod(monitoring(), "free_tool_id", "i", tool_id_))) PyErr_Clear();
}

void SeenCode::see(PyCodeObject* code) noexcept {
  if (tool_id_ < 0) return;
  const Ref<> seen(PyObject_CallMethod(monitoring(), "set_local_events", "iOi", tool_id_, code, 0));
  if (!seen) PyErr_Clear();
}

}  // namespace whence::cpython
#endif
