// c_api.cpp: see c_api.h.
#include "module/c_api.h"

#include "base/byte_pool.h"
#include "cpython/ref.h"
#include "cpython/thread.h"
#include "include/whence.h"
#include "module/stack_type.h"
#include "probes/counter.h"
#include "probes/gc.h"
#include "probes/mark.h"
#include "probes/span.h"
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

// The number of a name in that recording; 0 for no name.
std::uint64_t name_in(std::uint32_t recording, whence_name name) noexcept {
  return name != 0 ? store::store().string(recording, name - 1) : 0;
}

whence_name name(const char* text, size_t size) {
  if (store::store().in_wiped_child()) return 0;
  const auto ref = base::names().intern(std::span(reinterpret_cast<const uint8_t*>(text), size));
  return ref != base::BytePool::kNone ? ref + 1 : 0;
}

int recording() {
  return store::store().generation() != 0 ? 1 : 0;
}

void mark(whence_name name) {
  const std::uint32_t recording = store::store().generation();
  if (recording != 0) probes::mark(recording, name_in(recording, name));
}

void counter(whence_name name, int64_t value) {
  const std::uint32_t recording = store::store().generation();
  if (recording != 0) {
    probes::counter(recording, name_in(recording, name), std::int64_t{value});
  }
}

void counter_real(whence_name name, double value) {
  const std::uint32_t recording = store::store().generation();
  if (recording != 0) probes::counter(recording, name_in(recording, name), value);
}

static_assert(sizeof(whence_span) == sizeof(probes::Span));

probes::Span& as_span(whence_span* span) noexcept {
  return *reinterpret_cast<probes::Span*>(span);
}

void span_begin(whence_span* opaque, whence_name name) {
  probes::Span& span = as_span(opaque);
  span.start = 0;
  span.generation = store::store().generation();
  if (span.generation == 0) return;
  span.name = name_in(span.generation, name);
  probes::begin(span);
}

void span_end(whence_span* span, int error) {
  probes::end(as_span(span), error != 0);
}

uint64_t collection_begin(uint64_t generation) {
  const std::uint32_t recording = store::store().generation();
  return recording != 0 ? probes::gc_begin(recording, generation) : 0;
}

void collection_end(uint64_t begun, uint64_t generation, uint64_t collected,
                    uint64_t uncollectable) {
  const std::uint32_t recording = store::store().generation();
  if (recording != 0) {
    probes::gc_end(recording, begun, generation, collected, uncollectable);
  }
}

void name_thread(whence_name name) {
  const std::uint32_t recording = store::store().generation();
  if (recording == 0 || store::store().this_thread(true) == 0) return;
  store::store().name_thread(store::detail::this_cursor->os_id, name_in(recording, name));
}

const whence_api api = {WHENCE_API_VERSION,
                        sizeof(whence_api),
                        capture,
                        stack_object,
                        name,
                        recording,
                        mark,
                        counter,
                        counter_real,
                        span_begin,
                        span_end,
                        collection_begin,
                        collection_end,
                        name_thread};

}  // namespace

PyObject* make_c_api() noexcept {
  return PyCapsule_New(const_cast<whence_api*>(&api), WHENCE_CAPSULE, nullptr);
}

}  // namespace whence::module
