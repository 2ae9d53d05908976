// pack_callbacks.cpp: see pack_callbacks.h.
#include "module/pack_callbacks.h"

#include <Python.h>

#include <cstring>

#include "cpython/ref.h"

namespace whence::module {
namespace {

using cpython::Ref;

class HoldGil {
 public:
  HoldGil() noexcept : state_(PyGILState_Ensure()) {}
  ~HoldGil() { PyGILState_Release(state_); }
  HoldGil(const HoldGil&) = delete;
  HoldGil& operator=(const HoldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

Ref<> as_bytes(std::span<const std::uint8_t> bytes) noexcept {
  return Ref<>(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                         static_cast<Py_ssize_t>(bytes.size())));
}

}  // namespace

read::Unpacked call_unpack(void* callable, std::span<const std::uint8_t> packed,
                           std::span<std::uint8_t> out) {
  const HoldGil gil;
  const Ref<> bytes = as_bytes(packed);
  if (!bytes) return read::Unpacked::abort;
  const Ref<> result(PyObject_CallFunction(static_cast<PyObject*>(callable), "On", bytes.get(),
                                           static_cast<Py_ssize_t>(out.size())));
  if (!result) return read::Unpacked::abort;
  if (!PyBytes_Check(result.get()) ||
      static_cast<std::size_t>(PyBytes_GET_SIZE(result.get())) != out.size()) {
    return read::Unpacked::bad;
  }
  if (!out.empty()) std::memcpy(out.data(), PyBytes_AS_STRING(result.get()), out.size());
  return read::Unpacked::good;
}

bool call_pack(void* callable, std::span<const std::uint8_t> payload,
               std::vector<std::uint8_t>& out) {
  const HoldGil gil;
  const Ref<> bytes = as_bytes(payload);
  const Ref<> result(bytes ? PyObject_CallOneArg(static_cast<PyObject*>(callable), bytes.get())
                           : nullptr);
  if (!result) return false;
  if (!PyBytes_Check(result.get())) {
    PyErr_SetString(PyExc_TypeError, "pack() must return bytes");
    return false;
  }
  const char* data = PyBytes_AS_STRING(result.get());
  out.assign(data, data + PyBytes_GET_SIZE(result.get()));
  return true;
}

}  // namespace whence::module
