// c_calls.cpp: see c_calls.h.
#include "probes/c_calls.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/byte_pool.h"
#include "format/records/call.h"
#include "probes/calls.h"
#include "store/write.h"

namespace whence::probes {
namespace {

constexpr std::size_t kLongestPart = 200;

// Whose function it is: a module's or a type's.
std::string_view owner_of(PyObject* function) noexcept {
  if (!PyCFunction_Check(function)) return PyDescr_TYPE(function)->tp_name;
  PyObject* self = PyCFunction_GET_SELF(function);
  PyObject* module = reinterpret_cast<PyCFunctionObject*>(function)->m_module;
  if (self != nullptr && PyType_Check(self)) return reinterpret_cast<PyTypeObject*>(self)->tp_name;
  if (self != nullptr && !PyModule_Check(self)) return Py_TYPE(self)->tp_name;
  if (module == nullptr || !PyUnicode_Check(module) || !PyUnicode_IS_COMPACT_ASCII(module)) {
    return {};
  }
  return {static_cast<const char*>(PyUnicode_DATA(module)),
          static_cast<std::size_t>(PyUnicode_GET_LENGTH(module))};
}

const char* name_of_function(PyObject* function) noexcept {
  if (PyCFunction_Check(function))
    return reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name;
  return reinterpret_cast<PyMethodDescrObject*>(function)->d_method->ml_name;
}

base::BytePool::Ref ref_of_function(PyObject* function) noexcept {
  std::uint8_t text[2 * kLongestPart + 1];
  std::size_t size = 0;
  const auto add = [&](std::string_view part) {
    part = part.substr(0, kLongestPart);
    std::memcpy(text + size, part.data(), part.size());
    size += part.size();
  };
  const std::string_view owner = owner_of(function);
  add(owner);
  if (!owner.empty()) text[size++] = '.';
  add(name_of_function(function));
  const base::BytePool::Ref ref = base::names().find({text, size});
  return ref != base::BytePool::kNone ? ref : base::names().intern(std::span(text, size));
}

// Work that ended before it was told of cannot be inside the call that tells of it, so that is not
// recorded. It calls nothing: the next exit in this thread is its own, if it is of that frame.
thread_local const cpython::Frame* telling = nullptr;  // from that frame

bool tells_of_work(base::BytePool::Ref ref) noexcept {
  constexpr std::string_view kTeller = "whence._core.handle_event";
  static const base::BytePool::Ref teller = base::names().intern(
      std::span(reinterpret_cast<const std::uint8_t*>(kTeller.data()), kTeller.size()));
  return ref == teller && ref != base::BytePool::kNone;
}

}  // namespace

bool is_c_function(PyObject* callable) noexcept {
  return PyCFunction_Check(callable) || Py_IS_TYPE(callable, &PyMethodDescr_Type);
}

void c_called(const cpython::Frame* frame, PyObject* function) noexcept {
  if (!make_place_in(frame)) return;
  const std::uint32_t recording = CallOptions::get(detail::call_options.recording);
  const base::BytePool::Ref ref = ref_of_function(function);
  if (tells_of_work(ref)) {
    telling = frame;
    return;
  }
  const std::uint64_t name = store::store().string(recording, ref);
  store::write<format::CCall>(recording, name);
}

void c_left(const cpython::Frame* frame, bool by_exception) noexcept {
  if (!make_place_in(frame)) return;
  if (std::exchange(telling, nullptr) == frame) return;
  const std::uint32_t recording = CallOptions::get(detail::call_options.recording);
  if (by_exception) {
    store::write<format::CRaise>(recording);
  } else {
    store::write<format::CReturn>(recording);
  }
}

}  // namespace whence::probes
