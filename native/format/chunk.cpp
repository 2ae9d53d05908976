// chunk.cpp: see chunk.h.
#include "format/chunk.h"

#include "base/checksum.h"

namespace whence::format {
namespace {

std::uint32_t opening_of(ChunkHeader header) noexcept {
  header.state = 0;
  return base::checksum(&header, offsetof(ChunkHeader, opening_checksum));
}

std::uint32_t closing_of(const ChunkHeader& header) noexcept {
  return base::checksum(&header.committed,
                        offsetof(ChunkHeader, closing_checksum) - offsetof(ChunkHeader, committed));
}

}  // namespace

void seal_opening(ChunkHeader& header) noexcept {
  header.opening_checksum = opening_of(header);
}

void seal_closing(ChunkHeader& header) noexcept {
  header.closing_checksum = closing_of(header);
}

bool opening_is_good(const ChunkHeader& header, std::uint64_t file_id) noexcept {
  return header.magic == kChunkMagic && header.file_id == file_id && header.sequence != 0 &&
         header.opening_checksum == opening_of(header);
}

bool closing_is_good(const ChunkHeader& header) noexcept {
  return header.closing_checksum == closing_of(header);
}

}  // namespace whence::format
