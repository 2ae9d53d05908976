// ref.h: owning a reference to a Python object for the length of a scope.
//
// Threads: holders of the GIL. Allocates: never. Fails by: an empty Ref, with Python's error set.
#pragma once

#include <Python.h>

#include <utility>

namespace whence::cpython {

template <class T = PyObject>
class Ref {
 public:
  Ref() noexcept = default;
  explicit Ref(T* owned) noexcept : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(reinterpret_cast<PyObject*>(object_)); }

  static Ref borrow(T* object) noexcept {
    Py_XINCREF(reinterpret_cast<PyObject*>(object));
    return Ref(object);
  }

  [[nodiscard]] T* get() const noexcept { return object_; }
  [[nodiscard]] T* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace whence::cpython
