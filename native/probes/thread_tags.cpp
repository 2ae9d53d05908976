// thread_tags.cpp: see thread_tags.h.
#include "probes/thread_tags.h"

#include <cstdlib>
#include <cstring>

#include "base/byte_pool.h"
#include "base/ours.h"
#include "format/records/thread_tags.h"
#include "probes/call_frames.h"
#include "store/write.h"

namespace whence::probes {
namespace {

// Followed by its text.
struct Tags {
  base::BytePool::Ref ref;  // kNone: no recording has needed it yet
  std::uint32_t size;

  [[nodiscard]] std::span<const std::uint8_t> text() const noexcept {
    return {reinterpret_cast<const std::uint8_t*>(this + 1), size};
  }
};

[[gnu::tls_model("initial-exec")]] thread_local constinit Tags* mine = nullptr;

// Its number in that recording, written there first if need be; 0: none, or lost.
std::uint64_t name_in(std::uint32_t recording) noexcept {
  if (mine == nullptr) return 0;
  if (mine->ref == base::BytePool::kNone) mine->ref = base::names().find(mine->text());
  if (mine->ref == base::BytePool::kNone) {
    if (store::store().in_wiped_child() || store::store().refuses_names(recording)) return 0;
    mine->ref = base::names().intern(mine->text());
  }
  return store::store().string(recording, mine->ref);
}

}  // namespace

void set_tags(std::span<const std::uint8_t> text) noexcept {
  const base::Ours ours;
  std::free(mine);
  mine = nullptr;
  if (!text.empty()) mine = static_cast<Tags*>(std::malloc(sizeof(Tags) + text.size()));
  if (mine != nullptr) {
    *mine = {base::BytePool::kNone, static_cast<std::uint32_t>(text.size())};
    std::memcpy(mine + 1, text.data(), text.size());
  }
  store::store().set_on_new_chunk(begin_chunk);
  const std::uint32_t recording = store::store().generation();
  if (recording == 0 || store::detail::this_cursor == nullptr) return;
  store::write_if_room<format::ThreadTags, base::AnyClock>(name_in(recording));
}

void begin_chunk(std::uint32_t recording) noexcept {
  if (const std::uint64_t name = name_in(recording)) {
    store::write_if_room<format::ThreadTags, base::AnyClock>(name);
  }
  tell_frames(recording);
}

}  // namespace whence::probes
