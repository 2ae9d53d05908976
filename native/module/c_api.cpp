// c_api.cpp: see c_api.h.
#include "module/c_api.h"

#include "cpython/ref.h"
#include "cpython/thread.h"
#include "include/whence.h"
#include "module/stack_type.h"
#include "stacks/capture.h"
#include "stacks/store.h"

namespace whence::module {
namespace {

whence_stack capture(uint32_t what, uint32_t skip, uint32_t limit) {
  if ((what & WHENCE_PYTHON) == 0) return stacks::kEmpty;
  return stacks::capture(cpython::attached_state(), skip, limit);
}

PyObject* stack_object(whence_stack stack) {
  const cpython::Ref<> core(PyImport_ImportModule("whence._core"));
  if (!core) return nullptr;
  if (!stacks::store().stacks.contains(stack)) {
    return PyErr_Format(PyExc_ValueError, "%lu is not a stack", static_cast<unsigned long>(stack));
  }
  return new_stack(state_of(core.get()).stack_type, stack, nullptr);
}

const whence_api api = {WHENCE_API_VERSION, sizeof(whence_api), capture, stack_object};

}  // namespace

PyObject* make_c_api() noexcept {
  return PyCapsule_New(const_cast<whence_api*>(&api), WHENCE_CAPSULE, nullptr);
}

}  // namespace whence::module
