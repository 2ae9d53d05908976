// own_slot.cpp: see own_slot.h.
#include "cpython/own_slot.h"

#include <pthread.h>

namespace whence::cpython {

constinit std::size_t detail::own_place = 0;

#if PY_VERSION_HEX < 0x030C0000 && defined(__GLIBC__) && defined(__x86_64__)

namespace {

constexpr std::size_t kKeys = 32;       // that have their data in the descriptor
constexpr std::size_t kStride = 16;     // from one to the next
constexpr std::size_t kLargest = 2048;  // bytes of a descriptor that are looked at; it has more
constexpr std::size_t kWord = sizeof(void*);

[[nodiscard]] const void* word_at(std::size_t place) noexcept {
  const void* word;
  std::memcpy(&word, detail::thread_pointer() + place, sizeof word);
  return word;
}

// Where the data of this key is: the one word that follows what it is set to. 0: nowhere.
[[nodiscard]] std::size_t place_of(pthread_key_t key) noexcept {
  static const char first = 0, second = 0;
  if (pthread_setspecific(key, &first) != 0) return 0;
  std::size_t found = 0;
  for (std::size_t place = kWord; place < kLargest && found == 0; place += kWord) {
    if (word_at(place) == &first) found = place;
  }
  if (pthread_setspecific(key, &second) != 0) return 0;
  const bool follows = found != 0 && word_at(found) == &second;
  pthread_setspecific(key, nullptr);
  return follows ? found : 0;
}

}  // namespace

void find_own_slot() noexcept {
  PyThreadState* own = PyGILState_GetThisThreadState();
  pthread_key_t key;
  if (own == nullptr || detail::own_place != 0 || pthread_key_create(&key, nullptr) != 0) return;
  const std::size_t place = key < kKeys ? place_of(key) : 0;
  pthread_key_delete(key);
  if (place <= key * kStride) return;
  const std::size_t begin = place - key * kStride;
  for (std::size_t i = 0; i < kKeys; ++i) {
    if (word_at(begin + i * kStride) != own) continue;
    detail::own_place = begin + i * kStride;
    return;
  }
}

#else

void find_own_slot() noexcept {}

#endif

}  // namespace whence::cpython
