// c_api.cpp: see c_api.h.
#include "module/c_api.h"

#include <new>
#include <string>
#include <string_view>

#include "base/byte_pool.h"
#include "cpython/ref.h"
#include "cpython/thread.h"
#include "include/whence.h"
#include "module/stack_type.h"
#include "probes/counter.h"
#include "probes/gc.h"
#include "probes/mark.h"
#include "probes/pools.h"
#include "probes/span.h"
#include "probes/work.h"
#include "stacks/capture.h"
#include "stacks/store.h"

namespace whence::module {
namespace {

constexpr std::size_t kLongestName = 1'000'000;

whence_stack capture(uint32_t what, uint32_t skip, uint32_t limit) {
  const bool python = (what & WHENCE_PYTHON) != 0, native = (what & WHENCE_NATIVE) != 0;
  PyThreadState* state = python ? cpython::attached_state() : nullptr;
  if (!native) return stacks::capture(state, skip, limit);
  return stacks::capture_mixed({state, state != nullptr}, nullptr, skip, limit);
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

whence_domain domain(const char* name, size_t size) {
  if (store::store().in_wiped_child()) return 0;
  return probes::pool_named(
      base::names().intern(std::span(reinterpret_cast<const uint8_t*>(name), size)));
}

void allocated(whence_domain domain, uint64_t address, uint64_t size) {
  probes::pool_allocated(domain, address, size);
}

void freed(whence_domain domain, uint64_t address) {
  probes::pool_freed(domain, address);
}

void segment_allocated(whence_domain domain, uint64_t address, uint64_t size) {
  probes::segment_allocated(domain, address, size);
}

void segment_freed(whence_domain domain, uint64_t address) {
  probes::segment_freed(domain, address);
}

static_assert(WHENCE_NOT_KNOWN == probes::kNotKnown);

void out_of_memory(whence_domain domain, uint64_t requested, uint64_t available) {
  probes::pool_out_of_memory(domain, requested, available);
}

bool is_namespace(std::string_view text) noexcept {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

whence_backend backend(const char* name, size_t size, const char* name_space) try {
  if (store::store().in_wiped_child() || size > kLongestName) return 0;
  std::string text(name_space != nullptr ? name_space : "");
  if (name_space != nullptr && !is_namespace(text)) return 0;
  text += ':';
  text.append(name, size);
  const auto ref = base::names().intern(
      std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  return ref != base::BytePool::kNone ? ref + 1 : 0;
} catch (const std::bad_alloc&) {
  return 0;
}

void handle_event(whence_backend backend, int64_t handle, uint64_t start, uint64_t end,
                  whence_name name) {
  const std::uint32_t recording = store::store().generation();
  if (recording == 0 || backend == 0) return;
  probes::worked(recording, name_in(recording, backend), handle, start, end,
                 name_in(recording, name));
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
                        name_thread,
                        domain,
                        allocated,
                        freed,
                        segment_allocated,
                        segment_freed,
                        out_of_memory,
                        backend,
                        handle_event};

}  // namespace

PyObject* make_c_api() noexcept {
  return PyCapsule_New(const_cast<whence_api*>(&api), WHENCE_CAPSULE, nullptr);
}

}  // namespace whence::module
