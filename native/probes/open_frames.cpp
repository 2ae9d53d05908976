// open_frames.cpp: see open_frames.h.
#include "probes/open_frames.h"

#include <algorithm>
#include <cstring>

#include "base/pages.h"

namespace whence::probes {
namespace {

constexpr std::size_t kFirstBytes = 16 * 1024;  // a thousand frames

}  // namespace

void OpenFrames::set_last() noexcept {
  last_ = bottom_ + std::min(room_, watched_);
}

void OpenFrames::watch_from(std::size_t depth) noexcept {
  watched_ = depth;
  set_last();
}

bool OpenFrames::make_room(std::size_t wanted) noexcept {
  if (wanted <= room_) return true;
  std::size_t bytes = std::max(kFirstBytes, 2 * (room_ + 1) * sizeof(OpenFrame));
  while (bytes / sizeof(OpenFrame) <= wanted) bytes *= 2;
  auto* larger = static_cast<OpenFrame*>(base::map_pages(bytes));
  if (larger == nullptr) return false;
  const std::size_t open = bottom_ != nullptr ? depth() : 0;
  if (bottom_ != nullptr) {
    std::memcpy(larger, bottom_, (open + 1) * sizeof(OpenFrame));
    base::unmap_pages(bottom_, (room_ + 1) * sizeof(OpenFrame));
  }
  bottom_ = larger;
  top_ = larger + open;
  room_ = bytes / sizeof(OpenFrame) - 1;
  set_last();
  return true;
}

void OpenFrames::release() noexcept {
  if (bottom_ != nullptr) base::unmap_pages(bottom_, (room_ + 1) * sizeof(OpenFrame));
  top_ = last_ = bottom_ = nullptr;
  room_ = 0;
}

}  // namespace whence::probes
