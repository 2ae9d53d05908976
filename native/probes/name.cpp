// name.cpp: see name.h.
#include "probes/name.h"

#include <algorithm>

#include "cpython/code.h"
#include "store/store.h"

namespace whence::probes {

namespace {

constexpr std::size_t kLongestName = 1'000'000;

base::BytePool::Ref find(PyObject* text) noexcept {
  if (!PyUnicode_IS_COMPACT_ASCII(text)) return base::BytePool::kNone;
  const auto* bytes = static_cast<const std::uint8_t*>(PyUnicode_DATA(text));
  return base::names().find({bytes, static_cast<std::size_t>(PyUnicode_GET_LENGTH(text))});
}

base::BytePool::Ref add(PyObject* text) noexcept {
  base::UnicodeView view = cpython::view_text(text);
  view.length = std::min(view.length, kLongestName);
  return store::store().in_wiped_child() ? base::BytePool::kNone : base::names().intern(view);
}

}  // namespace

base::BytePool::Ref ref_of(PyObject* text) noexcept {
  const base::BytePool::Ref ref = find(text);
  return ref != base::BytePool::kNone ? ref : add(text);
}

std::uint64_t name_of(std::uint32_t recording, PyObject* text) noexcept {
  base::BytePool::Ref ref = find(text);
  if (ref == base::BytePool::kNone) {
    if (store::store().refuses_names(recording)) return 0;
    ref = add(text);
  }
  return store::store().string(recording, ref);
}

}  // namespace whence::probes
