// store_metadata.cpp: what events refer to, written before they do. All but string() under the
// store's lock.
#include <algorithm>

#include "base/byte_pool.h"
#include "format/records/code.h"
#include "format/records/native.h"
#include "format/records/string.h"
#include "store/store.h"

namespace whence::store {

using format::Committed;

namespace {

constexpr std::size_t kPart = 2048;  // of a long string; fits into the smallest chunk

}  // namespace

std::uint8_t* Store::reserve_metadata(std::size_t size) noexcept {
  if (state_ != State::on || size > capacity()) return nullptr;
  if (metadata_.chunk != kNoChunk &&
      size <= static_cast<std::size_t>(metadata_.end - metadata_.next)) {
    return metadata_.next;
  }
  if (metadata_.chunk != kNoChunk) seal(metadata_.chunk, metadata_.word);
  metadata_.chunk = take_chunk(format::ChunkClass::metadata, nullptr, 0, 0);
  if (metadata_.chunk == kNoChunk) {
    metadata_full_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  format::ChunkHeader& header = *chunks_.at(metadata_.chunk).mapped;
  metadata_.next = reinterpret_cast<std::uint8_t*>(&header + 1);
  metadata_.end = metadata_.next + capacity();
  metadata_.word = 0;
  metadata_.deltas = {};
  metadata_.deltas.time = header.start_ticks;
  return metadata_.next;
}

void Store::commit_metadata(std::uint8_t* end) noexcept {
  metadata_.word += static_cast<std::uint64_t>(end - metadata_.next);
  metadata_.next = end;
  format::publish_committed(chunks_.at(metadata_.chunk).mapped->committed, metadata_.word);
}

// What a chunk has left where the next part does not fit is taken, too.
bool Store::has_room_for_table(std::uint32_t recording, std::uint64_t parts,
                               std::size_t part_size) noexcept {
  if (!cursors_.same_process()) return false;
  const base::Holding holding(lock_);
  if (state_ != State::on || recording != last_generation_) return false;
  const std::uint64_t bytes =
      parts * (capacity() / std::max<std::size_t>(capacity() / part_size, 1));
  const std::uint64_t most = most_metadata(), taken = chunks_.metadata_count();
  const auto in_chunk = static_cast<std::uint64_t>(metadata_.end - metadata_.next);
  const std::uint64_t left = (most > taken ? most - taken : 0) * capacity() + in_chunk;
  if (bytes > left / 2 || tables_ + bytes > most * capacity() / 2) {
    ++header_->names_lost;
    return false;
  }
  tables_ += bytes;
  return true;
}

// A name that finds no room is tried once, and counted once.
std::uint64_t Store::write_string(std::uint32_t recording, std::uint32_t ref) noexcept {
  if (ref == base::BytePool::kNone || !cursors_.same_process()) return 0;
  const base::Holding holding(lock_);
  if (state_ != State::on || recording != last_generation_) return 0;
  std::atomic<std::uint32_t>* written = written_.ensure(ref);
  const std::uint32_t generation = last_generation_;
  const std::uint32_t lost = ~generation;
  if (written != nullptr && written->load(std::memory_order_relaxed) == generation) {
    return std::uint64_t{ref} + 1;
  }
  if (written != nullptr && written->load(std::memory_order_relaxed) == lost) return 0;
  const std::string_view text = base::names().get(ref);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const bool done =
      written != nullptr && append_string(std::uint64_t{ref} + 1, {bytes, text.size()});
  if (!done) ++header_->names_lost;
  if (written != nullptr) written->store(done ? generation : lost, std::memory_order_release);
  return done ? std::uint64_t{ref} + 1 : 0;
}

template <class Encode>
void Store::write_node(std::uint32_t recording, std::uint32_t id, Encode&& encode) noexcept {
  if (has_stack(recording, id) || !cursors_.same_process()) return;
  const base::Holding holding(lock_);
  if (state_ != State::on || recording != last_generation_) return;
  std::atomic<std::uint32_t>* written = written_stacks_.ensure(id);
  if (written == nullptr) return;
  const bool done = append_metadata(format::kLongestCompact, encode);
  if (!done) ++header_->names_lost;
  written->store(done ? recording : ~recording, std::memory_order_release);
}

void Store::write_stack(std::uint32_t recording, std::uint32_t id, std::uint32_t parent,
                        std::uint32_t code, std::int32_t offset) noexcept {
  write_node(recording, id, [&](std::uint8_t* out, auto&) {
    return format::Stack::encode(out, id, parent, code, offset);
  });
}

void Store::write_native_stack(std::uint32_t recording, std::uint32_t id, std::uint32_t parent,
                               std::uint32_t module, std::uint32_t address) noexcept {
  write_node(recording, id, [&](std::uint8_t* out, auto&) {
    return format::NativeStack::encode(out, id, parent, module, address);
  });
}

void Store::write_python_run(std::uint32_t recording, std::uint32_t id, std::uint32_t parent,
                             std::uint32_t python) noexcept {
  write_node(recording, id, [&](std::uint8_t* out, auto&) {
    return format::PythonRun::encode(out, id, parent, python);
  });
}

bool Store::refuses_names(std::uint32_t recording) noexcept {
  if (!metadata_full_.load(std::memory_order_relaxed) || !cursors_.same_process()) return false;
  const base::Holding holding(lock_);
  if (state_ != State::on || recording != last_generation_) return true;
  if (!metadata_full_.load(std::memory_order_relaxed)) return false;
  ++header_->names_lost;
  return true;
}

bool Store::append_string(std::uint64_t id, std::span<const std::uint8_t> text) noexcept {
  bool first = true;
  do {
    const auto part = text.first(std::min(text.size(), kPart));
    const auto encode = [&](std::uint8_t* out, format::Deltas&) {
      return first ? format::String::encode(out, id, part)
                   : format::StringPart::encode(out, id, part);
    };
    if (!append_metadata(format::body_size(id, part.size()), encode)) return false;
    text = text.subspan(part.size());
    first = false;
  } while (!text.empty());
  return true;
}

}  // namespace whence::store
