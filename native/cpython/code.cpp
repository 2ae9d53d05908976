// code.cpp: see code.h.
#include "cpython/code.h"

#include "cpython/layout.h"
#include "cpython/pending.h"
#include "cpython/ref.h"

namespace whence::cpython {

namespace detail {
Py_ssize_t slot = -1;
Py_ssize_t known_slot = kBeyondSlots;
}  // namespace detail

namespace {

using detail::slot;

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

void (*tell_death)(void*) = nullptr;
char sample;  // what find_slots() puts into a slot

// CPython calls this for code that was never marked too, with an empty slot, if another tool has
// put something into a slot of its own.
void on_death(void* content) {
  if (content != nullptr && content != &sample) tell_death(content);
}

// On code of our own: is a value that CPython put into the slot where we would look for it?
bool find_slots() noexcept {
  if (!kLayoutKnown) return false;
  const Ref<PyCodeObject> code(PyCode_NewEmpty("whence", "whence", 1));
  if (!code || kSetSlot(as_object(code.get()), slot, &sample) != 0) return false;
  const auto* slots = static_cast<const detail::Slots*>(code.get()->co_extra);
  const bool found = slots != nullptr && slots->count > slot && slots->count <= 255 &&
                     slots->content[slot] == &sample;
  return kSetSlot(as_object(code.get()), slot, nullptr) == 0 && found;
}

}  // namespace

// An interpreter has 255 slots and takes none back, so ours is noted in its dictionary: loading the
// module again finds it there, and another interpreter's dictionary is another.
bool request_code_slot(void (*died)(void*)) noexcept {
  constexpr char kNote[] = "whence.code_slot";
  tell_death = died;
  PyObject* notes = PyInterpreterState_GetDict(PyInterpreterState_Get());
  if (notes == nullptr) return false;
  if (PyObject* known = PyDict_GetItemString(notes, kNote)) {
    slot = PyLong_AsSsize_t(known);
    detail::known_slot = find_slots() ? slot : detail::kBeyondSlots;
    return !PyErr_Occurred();
  }
  const Py_ssize_t given = kRequestSlot(on_death);
  if (given < 0) {
    PyErr_SetString(PyExc_ImportError, "whence needs a code-extra slot and CPython has none left");
    return false;
  }
  const Ref<> note(PyLong_FromSsize_t(given));
  if (!note || PyDict_SetItemString(notes, kNote, note.get()) < 0) return false;
  slot = given;
  detail::known_slot = find_slots() ? slot : detail::kBeyondSlots;
  return !PyErr_Occurred();
}

void* detail::code_slot_by_api(PyCodeObject* code) noexcept {
  void* content = nullptr;
  kGetSlot(as_object(code), slot, &content);
  return content;
}

bool set_code_slot(PyCodeObject* code, void* content) noexcept {
  const PendingAside aside;
  return kSetSlot(as_object(code), slot, content) == 0;
}

bool is_dying(PyCodeObject* code) noexcept {
  return Py_REFCNT(code) == 0;
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
          code->co_firstlineno,
          (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0};
}

}  // namespace whence::cpython
