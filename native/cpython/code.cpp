// code.cpp: see code.h.
#include "cpython/code.h"

#include "cpython/pending.h"

namespace whence::cpython {
namespace {

Py_ssize_t slot = -1;  // guarded by the GIL: written when the module is loaded, read by captures

#if PY_VERSION_HEX >= 0x030C0000
constexpr auto kRequestSlot = PyUnstable_Eval_RequestCodeExtraIndex;
constexpr auto kGetSlot = PyUnstable_Code_GetExtra;
constexpr auto kSetSlot = PyUnstable_Code_SetExtra;
#else
constexpr auto kRequestSlot = _PyEval_RequestCodeExtraIndex;
constexpr auto kGetSlot = _PyCode_GetExtra;
constexpr auto kSetSlot = _PyCode_SetExtra;
#endif

PyObject* as_object(PyCodeObject* code) noexcept {
  return reinterpret_cast<PyObject*>(code);
}

}  // namespace

bool request_code_slot(void (*died)(void*)) noexcept {
  slot = kRequestSlot(died);
  return slot >= 0;
}

void* code_slot(PyCodeObject* code) noexcept {
  void* content = nullptr;
  kGetSlot(as_object(code), slot, &content);
  return content;
}

bool set_code_slot(PyCodeObject* code, void* content) noexcept {
  const PendingAside aside;
  return kSetSlot(as_object(code), slot, content) == 0;
}

base::UnicodeView view_text(PyObject* text) noexcept {
  return {PyUnicode_DATA(text), static_cast<std::size_t>(PyUnicode_GET_LENGTH(text)),
          static_cast<unsigned>(PyUnicode_KIND(text))};
}

CodeView view_code(const PyCodeObject* code) noexcept {
  const auto* table = reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(code->co_linetable));
  return {view_text(code->co_name),
          view_text(code->co_qualname),
          view_text(code->co_filename),
          {table, static_cast<std::size_t>(PyBytes_GET_SIZE(code->co_linetable))},
          code->co_firstlineno};
}

}  // namespace whence::cpython
