// monitoring.cpp: see monitoring.h. Empty below 3.12.
#include <Python.h>

#if PY_VERSION_HEX >= 0x030C0000
#include <opcode.h>
#include <structmember.h>

#include "cpython/monitoring.h"
#include "cpython/pending.h"
#include "cpython/ref.h"

namespace whence::cpython {
namespace {

constexpr std::size_t kEvents = static_cast<std::size_t>(MonitoredEvent::count);
constexpr const char* kNames[kEvents] = {
    "PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD",         "PY_UNWIND",
    "CALL",     "C_RETURN",  "C_RAISE",  "RAISE",     "EXCEPTION_HANDLED"};
constexpr int kToolIds[] = {4, 3, 2};  // debuggers, coverage, profilers and optimizers have theirs

struct Callback {
  PyObject base;
  Vectorcall call;
};

PyMemberDef callback_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Callback, call), READONLY, nullptr},
    {},
};
PyType_Slot callback_slots[] = {
    {Py_tp_members, callback_members},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_doc, const_cast<char*>("What sys.monitoring calls for whence.")},
    {0, nullptr},
};
PyType_Spec callback_spec = {"whence._core._Callback", sizeof(Callback), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                 Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
                             callback_slots};

// All guarded by the GIL.
int tool_id = -1;
PyObject* disable_object = nullptr;  // both are kept until the process ends: callbacks may be late
PyObject* callback_type = nullptr;

Ref<> monitoring() noexcept {
  PyObject* module = PySys_GetObject("monitoring");
  return Ref<>::borrow(module);
}

bool call_method(PyObject* module, const char* name, const char* format, auto... arguments) {
  return bool(Ref<>(PyObject_CallMethod(module, name, format, arguments...)));
}

long event_bit(PyObject* module, std::size_t event) noexcept {
  const Ref<> events(PyObject_GetAttrString(module, "events"));
  const Ref<> value(events ? PyObject_GetAttrString(events.get(), kNames[event]) : nullptr);
  return value ? PyLong_AsLong(value.get()) : -1;
}

bool take_tool_id(PyObject* module) noexcept {
  for (const int id : kToolIds) {
    if (tool_id >= 0) break;
    const Ref<> owner(PyObject_CallMethod(module, "get_tool", "i", id));
    if (!owner) return false;
    if (owner.get() != Py_None) continue;
    if (!call_method(module, "use_tool_id", "is", id, "whence")) return false;
    tool_id = id;
  }
  return tool_id >= 0;
}

bool register_callback(PyObject* module, Vectorcall function, long bit) {
  Ref<> callback = Ref<>::borrow(Py_None);
  if (function != nullptr) {
    callback = Ref<>(PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(callback_type), 0));
    if (!callback) return false;
    reinterpret_cast<Callback*>(callback.get())->call = function;
  }
  return call_method(module, "register_callback", "ilO", tool_id, bit, callback.get());
}

bool begin(const Vectorcall (&callbacks)[kEvents]) noexcept {
  const Ref<> module = monitoring();
  if (!module) return false;
  if (disable_object == nullptr) {
    disable_object = PyObject_GetAttrString(module.get(), "DISABLE");
    callback_type = PyType_FromSpec(&callback_spec);
    if (disable_object == nullptr || callback_type == nullptr) return false;
  }
  if (!take_tool_id(module.get())) return false;
  long wanted = 0;
  for (std::size_t event = 0; event < kEvents; ++event) {
    const long bit = event_bit(module.get(), event);
    if (bit < 0 || !register_callback(module.get(), callbacks[event], bit)) return false;
    // C_RETURN and C_RAISE come with CALL.
    if (callbacks[event] != nullptr &&
        event != static_cast<std::size_t>(MonitoredEvent::c_return) &&
        event != static_cast<std::size_t>(MonitoredEvent::c_raise)) {
      wanted |= bit;
    }
  }
  // What an earlier recording, or another tool, was told no more about is told again.
  return call_method(module.get(), "restart_events", nullptr) &&
         call_method(module.get(), "set_events", "il", tool_id, wanted);
}

void end() noexcept {
  const Ref<> module = monitoring();
  if (!module || tool_id < 0) return;
  call_method(module.get(), "set_events", "il", tool_id, 0L);
  for (std::size_t event = 0; event < kEvents; ++event) {
    const long bit = event_bit(module.get(), event);
    if (bit >= 0) register_callback(module.get(), nullptr, bit);
  }
  call_method(module.get(), "free_tool_id", "i", tool_id);
  tool_id = -1;
}

}  // namespace

const char* prepare_monitoring() noexcept {
  const PendingAside aside;
  const Ref<> module = monitoring();
  if (module && take_tool_id(module.get())) return nullptr;
  PyErr_Clear();
  return "tool_id_taken";
}

const char* start_monitoring(const Vectorcall (&callbacks)[11]) noexcept {
  const PendingAside aside;
  if (begin(callbacks)) return nullptr;
  const bool taken = tool_id < 0;
  PyErr_Clear();
  end();
  return taken ? "tool_id_taken" : "internal";
}

void stop_monitoring() noexcept {
  const PendingAside aside;
  end();
}

std::int64_t handler_offset(PyCodeObject* code, std::int64_t offset) noexcept {
  const auto* instruction = reinterpret_cast<const std::uint8_t*>(code->co_code_adaptive) + offset;
  return *instruction == PUSH_EXC_INFO ? offset + 2 : offset;
}

PyObject* disable() noexcept {
  return Py_NewRef(disable_object);
}

}  // namespace whence::cpython
#endif
