// pack_callbacks.cpp: see pack_callbacks.h.
#include "module/pack_callbacks.h"

#include <Python.h>

#include <cstring>

namespace whence::module {
namespace {

PyObject* as_bytes(std::span<const std::uint8_t> bytes) noexcept {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                   static_cast<Py_ssize_t>(bytes.size()));
}

}  // namespace

// A thread that the interpreter ends while it is in Python is unwound through here, without the
// GIL: so nothing in these frames has a destructor that touches Python.

read::Unpacked call_unpack(void* callable, std::span<const std::uint8_t> packed,
                           std::span<std::uint8_t> out, std::size_t* part) {
  PyObject* bytes = as_bytes(packed);
  if (bytes == nullptr) return read::Unpacked::abort;
  auto* function = static_cast<PyObject*>(callable);
  const auto most = static_cast<Py_ssize_t>(out.size());
  PyObject* result = part == nullptr ? PyObject_CallFunction(function, "On", bytes, most)
                                     : PyObject_CallFunction(function, "OnO", bytes, most, Py_True);
  Py_DECREF(bytes);
  if (result == nullptr) return read::Unpacked::abort;
  const Py_ssize_t size = PyBytes_Check(result) ? PyBytes_GET_SIZE(result) : -1;
  const bool good = part == nullptr ? size == most : size >= 0 && size <= most;
  if (good && size != 0) {
    std::memcpy(out.data(), PyBytes_AS_STRING(result), static_cast<std::size_t>(size));
  }
  if (good && part != nullptr) *part = static_cast<std::size_t>(size);
  Py_DECREF(result);
  return good ? read::Unpacked::good : read::Unpacked::bad;
}

bool call_pack(void* callable, std::span<const std::uint8_t> payload,
               std::vector<std::uint8_t>& out) {
  PyObject* bytes = as_bytes(payload);
  if (bytes == nullptr) return false;
  PyObject* result = PyObject_CallOneArg(static_cast<PyObject*>(callable), bytes);
  Py_DECREF(bytes);
  if (result == nullptr) return false;
  const bool good = PyBytes_Check(result);
  if (!good) PyErr_SetString(PyExc_TypeError, "pack() must return bytes");
  if (good) {
    const char* data = PyBytes_AS_STRING(result);
    out.assign(data, data + PyBytes_GET_SIZE(result));
  }
  Py_DECREF(result);
  return good;
}

}  // namespace whence::module
