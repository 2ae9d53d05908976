// loader.cpp: see loader.h. FORMAT.md, "How a chunk is read", is the rule that this follows.
#include "read/loader.h"

#include <algorithm>

#include "base/checksum.h"
#include "format/recent_addresses.h"

namespace whence::read {
namespace {

using format::ChunkHeader;
using format::ChunkState;
using format::Committed;

Loaded damaged(Chunk& chunk, const char* why) noexcept {
  chunk.why = why;
  chunk.payload = {};
  return Loaded::damaged;
}

constexpr const char kWrongChecksum[] = "a chunk does not agree with its checksum";
constexpr const char kWrongHeader[] = "the header of a chunk is damaged";

}  // namespace

Loaded Loader::load(const Entry& entry, Chunk& chunk) {
  chunk = {};
  const auto committed = Committed::from(entry.committed);
  chunk.claimed = committed.events;
  if (source_.input().read(entry.offset, &chunk.header, sizeof chunk.header) <
      sizeof chunk.header) {
    return damaged(chunk, kCutShort);
  }
  const bool same = chunk.header.sequence == entry.sequence && chunk.header.state != 0 &&
                    format::opening_is_good(chunk.header, source_.file_id());
  if (!same) return source_.live() ? Loaded::taken : damaged(chunk, kWrongHeader);
  return source_.compact() ? load_compact(entry, chunk) : load_fixed(entry, chunk);
}

std::size_t Loader::fetch(std::vector<std::uint8_t>& buffer, std::uint64_t offset,
                          std::size_t size) {
  if (buffer.size() < size) buffer.resize(size);
  return source_.input().read(offset + sizeof(ChunkHeader), buffer.data(), size);
}

Loaded Loader::load_fixed(const Entry& entry, Chunk& chunk) {
  const bool sealed = chunk.header.state == static_cast<std::uint32_t>(ChunkState::sealed);
  const std::uint32_t listed = Committed::from(entry.committed).bytes;
  // Sealed since it was listed: all of it has to agree, what was there then counts.
  const std::uint32_t claimed = sealed ? Committed::from(chunk.header.committed).bytes : listed;
  if (sealed && !format::closing_is_good(chunk.header)) return damaged(chunk, kWrongHeader);
  if (claimed > source_.largest_payload()) {
    if (sealed) return damaged(chunk, kWrongHeader);
    chunk.why = "a chunk claims to be longer than it can be";
  }
  const std::uint32_t size = std::min(claimed, source_.largest_payload());
  const std::size_t got = fetch(payload_, entry.offset, size);
  if (source_.live()) {
    ChunkHeader again;
    const std::size_t there = source_.input().read(entry.offset, &again, sizeof again);
    if (there < sizeof again || again.sequence != entry.sequence || again.state == 0) {
      return Loaded::taken;
    }
  }
  // Nobody knows what the rest was, so there is nothing to check the beginning with.
  if (got < size || source_.cuts_chunk(entry.offset)) chunk.why = kCutShort;
  if (sealed && got == size &&
      base::checksum(payload_.data(), size) != chunk.header.payload_checksum) {
    return damaged(chunk, kWrongChecksum);
  }
  chunk.payload = {payload_.data(), std::min<std::size_t>(got, listed)};
  return Loaded::good;
}

// What was fetched into `packed_`, as payload. Of a frame that is cut, `size` becomes how much that
// gives.
Unpacked Loader::unpack_into(const ChunkHeader& header, std::size_t got, std::size_t& size) {
  const Unpack& unpack = source_.unpack();
  if (unpack.call == nullptr) return Unpacked::bad;
  const std::span packed(packed_.data(), got);
  const bool is_cut = got < header.stored;
  if (payload_.size() < size) payload_.resize(size);
  const std::span payload(payload_.data(), size);
  if (header.coding == format::Coding::zstd) {
    return unpack.call(unpack.context, packed, payload, is_cut ? &size : nullptr);
  }
  if (header.recoded > source_.largest_payload()) return Unpacked::bad;
  if (recoded_.size() < header.recoded) recoded_.resize(header.recoded);
  const std::span recoded(recoded_.data(), header.recoded);
  std::size_t part = recoded.size();
  const Unpacked result = unpack.call(unpack.context, packed, recoded, is_cut ? &part : nullptr);
  if (result != Unpacked::good) return result;
  if (is_cut) {
    size = format::restore_beginning(recoded.first(part), payload);
    return Unpacked::good;
  }
  return format::restore(recoded, payload) ? Unpacked::good : Unpacked::bad;
}

Loaded Loader::load_plain(const Entry& entry, Chunk& chunk, std::uint32_t size) {
  if (chunk.header.stored != size) return damaged(chunk, kWrongHeader);
  const std::size_t got = fetch(payload_, entry.offset, size);
  if (got < size) chunk.why = kCutShort;
  chunk.payload = {payload_.data(), got};
  return Loaded::good;
}

Loaded Loader::load_packed(const Entry& entry, Chunk& chunk, std::uint32_t size) {
  const std::size_t got = fetch(packed_, entry.offset, chunk.header.stored);
  if (got < chunk.header.stored) chunk.why = kCutShort;
  std::size_t there = size;
  switch (unpack_into(chunk.header, got, there)) {
    case Unpacked::good: break;
    case Unpacked::abort: return Loaded::aborted;
    case Unpacked::bad: return damaged(chunk, "a packed chunk cannot be unpacked");
  }
  chunk.payload = {payload_.data(), there};
  return Loaded::good;
}

Loaded Loader::load_compact(const Entry& entry, Chunk& chunk) {
  const ChunkHeader& header = chunk.header;
  const std::uint32_t size = Committed::from(header.committed).bytes;
  if (!format::closing_is_good(header)) return damaged(chunk, kWrongHeader);
  const std::uint32_t most = source_.largest_payload();
  if (size > most || header.stored > most) return damaged(chunk, kWrongHeader);
  Loaded loaded;
  switch (header.coding) {
    case format::Coding::plain: loaded = load_plain(entry, chunk, size); break;
    case format::Coding::zstd:
    case format::Coding::recoded_zstd: loaded = load_packed(entry, chunk, size); break;
    default: return damaged(chunk, "a chunk is packed in a way that is not known");
  }
  if (loaded != Loaded::good) return loaded;
  // Of a chunk that is cut, nobody knows what the rest was: there is nothing to check it with.
  const bool whole = chunk.payload.size() == size;
  if (whole && base::checksum(payload_.data(), size) != header.payload_checksum) {
    return damaged(chunk, kWrongChecksum);
  }
  return Loaded::good;
}

}  // namespace whence::read
