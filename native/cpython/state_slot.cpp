// state_slot.cpp: see state_slot.h.
#include "cpython/state_slot.h"

#include <link.h>

#include <cstddef>
#include <cstdint>

// The loader's, which compilers call for such variables. A thread that has a state has used this
// one before: so it is there, and no lock is taken. To list libraries would take one, and whoever
// holds that may be waiting for the GIL.
extern "C" void* __tls_get_addr(void* index);

namespace whence::cpython {

namespace detail {
constinit thread_local PyThreadState* const* state_slot = nullptr;
}

namespace {

using Slot = PyThreadState* const;
constexpr std::size_t kCandidates = 4;

// What the loader knows a thread-local variable by: of which library, and where among its own.
struct Index {
  unsigned long library = 0, place = 0;
};

Index slot_index;  // set once; of no library: it is not known

// The calling thread's copies of the thread-local variables of the library that CPython is in.
struct Variables {
  const char* begin = nullptr;
  std::size_t size = 0;
  unsigned long library = 0;

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
                                       part.p_memsz, library->dlpi_tls_modid};
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
  std::size_t cleared = 0, found = 0;
  PyEval_SaveThread();
  for (std::size_t i = 0; i < count; ++i) {
    if (*static_cast<volatile Slot*>(all.at(places[i])) != nullptr) continue;
    found = places[i];
    ++cleared;
  }
  PyEval_RestoreThread(state);
  if (cleared == 1 && *static_cast<volatile Slot*>(all.at(found)) == state) {
    slot_index = {all.library, found};
  }
}

bool state_slot_is_known() noexcept {
  return slot_index.library != 0 || own_slot_is_known();
}

PyThreadState* detail::state_without_slot() noexcept {
  thread_local constinit bool tried = false;
  Slot state = calling_state();
  if (tried || state == nullptr || slot_index.library == 0) return state;
  tried = true;
  auto* slot = static_cast<Slot*>(__tls_get_addr(&slot_index));
  if (*slot == state) state_slot = slot;
  return state;
}

}  // namespace whence::cpython
