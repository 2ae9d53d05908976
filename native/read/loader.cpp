// loader.cpp: see loader.h. FORMAT.md, "How a chunk is read", is the rule that this follows.
#include "read/loader.h"

#include <algorithm>

#include "base/checksum.h"

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

constexpr const char kCutShort[] = "the file ends within a chunk";
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
  if (sealed) {
    if (got < size) return damaged(chunk, kCutShort);
    if (base::checksum(payload_.data(), size) != chunk.header.payload_checksum) {
      return damaged(chunk, kWrongChecksum);
    }
  } else if (got < size) {
    chunk.why = kCutShort;
  }
  chunk.payload = {payload_.data(), std::min<std::size_t>(got, listed)};
  return Loaded::good;
}

Loaded Loader::load_compact(const Entry& entry, Chunk& chunk) {
  const ChunkHeader& header = chunk.header;
  const std::uint32_t size = Committed::from(header.committed).bytes;
  if (!format::closing_is_good(header)) return damaged(chunk, kWrongHeader);
  const std::uint32_t most = source_.largest_payload();
  if (size > most || header.stored > most) return damaged(chunk, kWrongHeader);
  if (header.coding == format::Coding::plain) {
    if (header.stored != size) return damaged(chunk, kWrongHeader);
    if (fetch(payload_, entry.offset, size) < size) return damaged(chunk, kCutShort);
  } else if (header.coding == format::Coding::zstd) {
    if (fetch(packed_, entry.offset, header.stored) < header.stored) {
      return damaged(chunk, kCutShort);
    }
    if (payload_.size() < size) payload_.resize(size);
    const Unpack& unpack = source_.unpack();
    const Unpacked result =
        unpack.call == nullptr
            ? Unpacked::bad
            : unpack.call(unpack.context, {packed_.data(), header.stored}, {payload_.data(), size});
    if (result == Unpacked::abort) return Loaded::aborted;
    if (result == Unpacked::bad) return damaged(chunk, "a packed chunk cannot be unpacked");
  } else {
    return damaged(chunk, "a chunk is packed in a way that is not known");
  }
  if (base::checksum(payload_.data(), size) != header.payload_checksum) {
    return damaged(chunk, kWrongChecksum);
  }
  chunk.payload = {payload_.data(), size};
  return Loaded::good;
}

}  // namespace whence::read
