// pending.h: setting the pending exception aside while we call something that could replace it.
//
// Threads: holders of the GIL. Allocates: never. Fails by: it cannot.
#pragma once

#include <Python.h>

namespace whence::cpython {

class [[nodiscard]] PendingAside {
 public:
  PendingAside() noexcept;
  ~PendingAside();  // drops whatever was raised meanwhile
  PendingAside(const PendingAside&) = delete;
  PendingAside& operator=(const PendingAside&) = delete;

 private:
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* raised_;
#else
  PyObject *type_, *value_, *traceback_;
#endif
};

#if PY_VERSION_HEX >= 0x030C0000
inline PendingAside::PendingAside() noexcept : raised_(PyErr_GetRaisedException()) {}
inline PendingAside::~PendingAside() {
  PyErr_SetRaisedException(raised_);
}
#else
inline PendingAside::PendingAside() noexcept {
  PyErr_Fetch(&type_, &value_, &traceback_);
}
inline PendingAside::~PendingAside() {
  PyErr_Restore(type_, value_, traceback_);
}
#endif

}  // namespace whence::cpython
