// name.cpp: see name.h.
#include "probes/name.h"

#include "cpython/code.h"
#include "store/store.h"

namespace whence::probes {

base::BytePool::Ref ref_of(PyObject* text) noexcept {
  base::BytePool& names = base::names();
  if (PyUnicode_IS_COMPACT_ASCII(text)) [[likely]] {
    const auto* bytes = static_cast<const std::uint8_t*>(PyUnicode_DATA(text));
    const auto size = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text));
    const base::BytePool::Ref ref = names.find({bytes, size});
    if (ref != base::BytePool::kNone) [[likely]]
      return ref;
  }
  return names.intern(cpython::view_text(text));
}

std::uint64_t name_of(PyObject* text) noexcept {
  return store::store().string(ref_of(text));
}

}  // namespace whence::probes
