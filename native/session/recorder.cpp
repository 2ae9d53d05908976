// recorder.cpp: see recorder.h.
#include "session/recorder.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/byte_pool.h"
#include "base/not_cancelled.h"
#include "base/system.h"
#include "format/records/info.h"
#include "store/file.h"

namespace whence::session {
namespace {

constexpr std::size_t kLongestFact = 2048;

std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

bool is_the_recording(const char* path) noexcept {
  struct stat status;
  return lstat(path, &status) == 0 &&
         base::FileId{status.st_dev, status.st_ino} == store::store().file_id();
}

}  // namespace

int start(const store::Options& options) noexcept {
  return store::store().start(options);
}

void tell(std::string_view key, std::string_view value) noexcept {
  const std::uint32_t recording = store::store().generation();
  const std::uint64_t name = store::store().string(recording, base::names().intern(bytes_of(key)));
  const auto text = bytes_of(value).first(std::min(value.size(), kLongestFact));
  if (name == 0) return;
  store::store().write_metadata(
      format::body_size(name, text.size()),
      [&](std::uint8_t* out, format::Deltas&) { return format::Info::encode(out, name, text); });
}

int stop() noexcept {
  return store::store().stop();
}

int dump(const char* path, bool overwrite) noexcept {
  const base::NotCancelled not_cancelled;
  if (is_the_recording(path)) return EBUSY;
  store::File file;
  if (const int error = file.create(path, overwrite)) return error;
  int error = store::store().dump(file.descriptor());
  if (error == 0) error = file.settle();
  if (error != 0) {
    file.discard();
  } else {
    file.close();
  }
  return error;
}

bool is_users_error(int error) noexcept {
  switch (error) {
    case EEXIST:
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
    case EBUSY: return true;
    default: return false;
  }
}

}  // namespace whence::session
