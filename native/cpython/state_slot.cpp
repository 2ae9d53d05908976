// state_slot.cpp: see state_slot.h.
#include "cpython/state_slot.h"

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace whence::cpython {

namespace detail {
constinit thread_local PyThreadState* const* state_slot = nullptr;
}

namespace {

using Slot = PyThreadState* const;
constexpr std::size_t kUnknown = SIZE_MAX;
constexpr std::size_t kCandidates = 4;

std::size_t slot_place = kUnknown;  // among CPython's thread-local variables. Set once

// The calling thread's copies of the thread-local variables of the library that CPython is in.
struct Variables {
  const char* begin = nullptr;
  std::size_t size = 0;

  [[nodiscard]] Slot* at(std::size_t place) const noexcept {
    return reinterpret_cast<Slot*>(begin + place);
  }
};

bool is_in(const dl_phdr_info& library, std::uintptr_t address) noexcept {
  for (std::size_t i = 0; i < library.dlpi_phnum; ++i) {
    const auto& part = library.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && address - library.dlpi_addr - part.p_vaddr < part.p_memsz) {
      return true;
    }
  }
  return false;
}

int look_at(dl_phdr_info* library, std::size_t, void* found) noexcept {
  if (!is_in(*library, reinterpret_cast<std::uintptr_t>(&PyThreadState_Get))) return 0;
  for (std::size_t i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    if (part.p_type != PT_TLS || library->dlpi_tls_data == nullptr) continue;
    *static_cast<Variables*>(found) = {static_cast<const char*>(library->dlpi_tls_data),
                                       part.p_memsz};
  }
  return 1;
}

Variables variables() noexcept {
  Variables found;
  dl_iterate_phdr(look_at, &found);
  return found;
}

}  // namespace

void find_state_slot() noexcept {
  const Variables all = variables();
  Slot state = calling_state();
  std::size_t places[kCandidates];
  std::size_t count = 0;
  for (std::size_t place = 0; place + sizeof(Slot) <= all.size; place += sizeof(Slot)) {
    if (*all.at(place) == state && count < kCandidates) places[count++] = place;
  }
  if (count == 0) return;  // as on 3.11, where it is no thread's own
  std::size_t cleared = 0, found = kUnknown;
  PyEval_SaveThread();
  for (std::size_t i = 0; i < count; ++i) {
    if (*static_cast<volatile Slot*>(all.at(places[i])) != nullptr) continue;
    found = places[i];
    ++cleared;
  }
  PyEval_RestoreThread(state);
  if (cleared == 1 && *static_cast<volatile Slot*>(all.at(found)) == state) slot_place = found;
}

bool state_slot_is_known() noexcept {
  return slot_place != kUnknown;
}

PyThreadState* detail::state_without_slot() noexcept {
  thread_local constinit bool tried = false;
  Slot state = calling_state();
  if (tried || slot_place == kUnknown) return state;
  tried = true;
  const Variables all = variables();
  if (all.begin != nullptr && *all.at(slot_place) == state) state_slot = all.at(slot_place);
  return state;
}

}  // namespace whence::cpython
