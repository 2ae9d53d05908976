// store.cpp: see store.h. How a recording begins and ends.
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/byte_pool.h"
#include "base/clock.h"
#include "base/pages.h"
#include "base/system.h"

namespace whence::store {

using format::FileHeader;
using format::FileState;
using format::Reason;

static_assert(std::is_trivially_destructible_v<Store>);

namespace detail {
constinit Store the_store;
constinit thread_local Cursor* this_cursor = nullptr;
}  // namespace detail

namespace {

// The kernel has compared the counters of all processors with each other, and watches them.
bool kernel_trusts_counter() noexcept {
#if defined(__aarch64__)
  return true;
#else
  const char* path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const int file = base::system.open(path, O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return false;
  char name[16] = {};
  const ssize_t got = base::read_all(file, name, sizeof name - 1, 0);
  base::system.close(file);
  return got >= 4 && std::memcmp(name, "tsc\n", 4) == 0;
#endif
}

void fill_random(std::array<std::uint8_t, 16>& bytes) noexcept {
  if (getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK) == 16) return;
  const std::uint64_t some[2] = {base::ticks(), base::nanoseconds(CLOCK_REALTIME) ^
                                                    static_cast<std::uint64_t>(getpid()) << 40};
  std::memcpy(bytes.data(), some, sizeof some);
}

std::uint32_t header_size() noexcept {
  return static_cast<std::uint32_t>(std::max(4096L, sysconf(_SC_PAGESIZE)));
}

FileHeader make_header(const Options& options) noexcept {
  FileHeader header = {};
  header.magic = format::kMagic;
  header.major = format::kMajor;
  header.minor = format::kMinor;
  header.header_size = header_size();
  fill_random(header.file_id);
  header.chunk_size = options.chunk_size;
  header.layout = format::Layout::fixed;
  header.clock = static_cast<std::uint32_t>(choose_clock());
  header.pid = static_cast<std::uint32_t>(getpid());
  header.ticks_per_second = base::estimate_frequency();
  const base::ClockPair start = base::read_clocks();
  header.start_ticks = start.ticks;
  header.start_monotonic = start.monotonic;
  header.start_wall = base::nanoseconds(CLOCK_REALTIME);
  header.max_size = options.max_size;
  header.keep = options.keep;
  header.state = FileState::recording;
  seal_opening(header);
  return header;
}

}  // namespace

base::ClockKind choose_clock() noexcept {
  return base::choose_clock(kernel_trusts_counter());
}

int Store::start(const Options& options) noexcept {
  if (!cursors_.same_process()) forget_parent();
  const base::Holding holding(lock_);
  if (state_ != State::idle) return EBUSY;
  if (!cursors_.prepare()) return ENOMEM;
  prepare_for_ends_of_threads();
  if (const int error = file_.create(options.path, options.overwrite)) return error;
  header_ = &spare_header_;
  *header_ = make_header(options);
  chunk_size_ = options.chunk_size;
  const std::uint64_t room =
      options.max_size > header_->header_size ? options.max_size - header_->header_size : 0;
  most_chunks_ =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(room / chunk_size_, kNoChunk - 1));
  keep_ticks_ = static_cast<std::uint64_t>(static_cast<double>(options.keep) / 1e9 *
                                           static_cast<double>(header_->ticks_per_second));
  sequence_ = sealed_events_ = 0;
  metadata_full_ = false;
  tables_ = 0;
  last_thread_ = 0;
  parked_count_ = introduced_count_ = 0;
  has_late_ = false;
  metadata_ = {};
  chunks_.clear();
  state_ = State::on;
  if (++last_generation_ == 0) ++last_generation_;
  if (const int error = map_header()) {
    fail(reason_of(error), error);
    file_.discard();  // nothing can be read from it
  }
  generation_.store(last_generation_, std::memory_order_release);
  return 0;
}

int Store::map_header() noexcept {
  const std::size_t size = header_->header_size;
  if (const int error = file_.reserve(0, size, File::Pages::reserved)) return error;
  auto* mapped = static_cast<FileHeader*>(file_.map(0, size));
  if (mapped == nullptr) return errno;
  *mapped = spare_header_;
  if (const int error = file_.settle()) {
    File::unmap(mapped, size);
    return error;
  }
  header_ = mapped;
  return 0;
}

int Store::stop() noexcept {
  if (!cursors_.same_process()) {
    forget_parent();
    return -1;
  }
  const base::Holding holding(lock_);
  if (state_ == State::idle) return -1;
  const std::uint32_t generation = generation_.exchange(0, std::memory_order_acq_rel);
  cursors_.close_all(generation);
  const std::uint64_t deadline = end_of_patience();
  bool all_idle = true;
  cursors_.for_each(generation, [&](Cursor& cursor) {
    if (wait_until_idle(cursor, deadline)) return detach(cursor);
    all_idle = false;  // its chunk stays open and mapped, and may still get the record
  });
  seal_parked();
  if (metadata_.chunk != kNoChunk) seal(metadata_.chunk, metadata_.word);
  const base::ClockPair end = base::read_clocks();
  header_->end_ticks = end.ticks;
  header_->end_monotonic = end.monotonic;
  if (!all_idle) fail(Reason::internal, 0);
  if (all_idle) count_all();
  if (state_ == State::on) header_->state = FileState::closed;
  seal_closing(*header_);
  if (header_ != &spare_header_) {
    spare_header_ = *header_;
    File::unmap(header_, header_->header_size);
    header_ = &spare_header_;
  }
  state_ = State::idle;
  return file_.release();
}

// So that a reader notices what is missing.
void Store::count_all() noexcept {
  header_->produced = sealed_events_ + header_->journal.after;
  for (const std::uint64_t dropped : header_->dropped) header_->produced += dropped;
  for (std::uint32_t i = 0; i < chunks_.count(); ++i) {
    if (chunks_.at(i).sequence != 0) ++header_->chunks;
  }
}

// Whatever holds a chunk may go on to its end of a record, not further.
void Store::fail(Reason reason, int error) noexcept {
  if (state_ != State::on) return;
  state_ = State::ended;
  const base::ClockPair end = base::read_clocks();
  header_->reason = reason;
  header_->error = error;
  header_->end_ticks = end.ticks;
  header_->end_monotonic = end.monotonic;
  header_->state = FileState::ended;
  cursors_.close_all(last_generation_);
}

void Store::drop(Cursor* cursor, Reason reason, std::uint64_t events) noexcept {
  header_->dropped[static_cast<std::size_t>(reason)] += events;
  if (cursor == nullptr || events == 0) return;
  cursor->events += events;
  cursor->lost_events += events;
  cursor->lost_reason = static_cast<std::uint32_t>(reason);
}

Store::Spot Store::this_spot() noexcept {
  const Cursor* cursor = detail::this_cursor;
  if (cursor == nullptr || !cursors_.same_process()) return {};
  const base::Holding holding(lock_);
  if (cursor->chunk == kNoChunk || cursor->generation != last_generation_) return {};
  return {cursor->chunk, chunks_.at(cursor->chunk).sequence};
}

bool Store::is_there(const Spot& spot) noexcept {
  if (spot.chunk == kNoChunk || !cursors_.same_process()) return false;
  const base::Holding holding(lock_);
  return spot.chunk < chunks_.count() && chunks_.at(spot.chunk).sequence == spot.sequence;
}

Status Store::status() noexcept {
  Status status = {};
  status.descriptor = -1;
  if (!cursors_.same_process()) return status;
  const base::Holding holding(lock_);
  if (header_ == nullptr) return status;
  if (file_.is_ours()) status.descriptor = file_.descriptor();
  status.state = state_;
  status.reason = header_->reason;
  status.error = header_->error;
  status.start_ticks = header_->start_ticks;
  status.start_monotonic = header_->start_monotonic;
  status.recorded = sealed_events_;
  if (state_ != State::idle) {
    cursors_.for_each(last_generation_, [&](Cursor& cursor) {
      if (cursor.committed != nullptr) status.recorded += cursor.events_in_chunk();
    });
    for (std::uint32_t i = 0; i < chunks_.count(); ++i)
      status.recorded += chunks_.at(i).handed_over;
  }
  status.dropped = header_->dropped;
  status.dropped[static_cast<std::size_t>(Reason::ring)] += header_->journal.after;
  status.names_lost = header_->names_lost;
  status.bytes = header_->header_size + std::uint64_t{chunks_.count()} * chunk_size_;
  return status;
}

// Only this thread is left, and nothing here belongs to this process: the file, its mappings and
// whatever was under way in other threads are the parent's. They are let go of, not touched.
void Store::forget_parent() noexcept {
  lock_.reset();
  base::names().lock().reset();
  detail::this_cursor = nullptr;
  cursors_.forget_all();
  generation_.store(0, std::memory_order_relaxed);
  state_ = State::idle;
  const int descriptor = file_.release();
  if (descriptor >= 0) base::system.close(descriptor);
  header_ = nullptr;
  chunks_.clear();
  metadata_ = {};
  parked_count_ = introduced_count_ = 0;
  has_late_ = false;
}

}  // namespace whence::store
