// rewrite.cpp: see rewrite.h.
#include "read/rewrite.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "base/system.h"
#include "format/recent_addresses.h"
#include "read/timeline.h"

namespace whence::read {
namespace {

using format::ChunkHeader;
using format::ChunkState;
using format::FileHeader;
using format::FileState;

constexpr std::uint32_t kHeaderSize = 4096;

class Rewriter {
 public:
  Rewriter(const Source& source, int file, const RewriteOptions& options)
      : source_(source), file_(file), options_(options), timeline_(source), loader_(source) {}

  Rewritten run() {
    last_ticks_ = last_ticks(source_);
    if (options_.keep != 0) {
      newest_end_ = timeline_.monotonic_at(last_chunk_ticks(source_, Select::events));
    }
    count_header(done_.totals, source_);
    done_.size = kHeaderSize;
    for (const Entry& entry : source_.entries()) {
      last_sequence_ = std::max(last_sequence_, entry.sequence);
      switch (loader_.load(entry, chunk_)) {
        case Loaded::good: keep(entry); break;
        case Loaded::damaged: count_damaged(done_.totals, entry, chunk_); break;
        case Loaded::taken: count_taken(done_.totals, entry); break;
        case Loaded::aborted: done_.aborted = true; break;
      }
      if (done_.aborted || done_.error != 0) return std::move(done_);
    }
    count_missing(done_.totals, source_);
    if (options_.symbols != nullptr && !options_.symbols->empty()) add_symbols();
    if (done_.aborted) return std::move(done_);
    write_header();
    return std::move(done_);
  }

 private:
  void keep(const Entry& entry) {
    const Examined found = examine(chunk_);
    count_chunk(done_.totals, entry, found);
    const ChunkHeader& old = chunk_.header;
    const bool sealed = entry.state == ChunkState::sealed;
    const std::uint64_t end = sealed ? old.end_ticks : found.last_ticks;
    const std::uint64_t end_monotonic =
        sealed ? old.end_monotonic : timeline_.monotonic_at(found.last_ticks);
    if (is_too_old(end_monotonic)) {
      --done_.totals.chunks;
      done_.totals.recorded -= found.events;
      done_.totals.drop(format::Reason::ring, found.events);
      return;
    }
    if (found.good_bytes == 0) return;

    ChunkHeader header{};
    std::memcpy(&header, &old, offsetof(ChunkHeader, committed));
    header.state = static_cast<std::uint32_t>(ChunkState::sealed);
    header.committed =
        format::Committed{static_cast<std::uint32_t>(found.good_bytes), found.events}.word();
    header.end_ticks = end;
    header.end_monotonic = end_monotonic;
    write_chunk(header, chunk_.payload.first(found.good_bytes));
  }

  // As if they had been written last.
  void add_symbols() {
    const std::size_t room = source_.header().chunk_size - sizeof(ChunkHeader);
    for (const std::vector<std::uint8_t>& payload : options_.symbols->payloads(room)) {
      ChunkHeader header{};
      header.magic = format::kChunkMagic;
      std::memcpy(&header.file_id, source_.header().file_id.data(), sizeof header.file_id);
      header.sequence = ++last_sequence_;
      header.what = format::ChunkClass::metadata;
      header.start_ticks = header.end_ticks = last_ticks_;
      header.start_monotonic = header.end_monotonic = timeline_.monotonic_at(last_ticks_);
      format::seal_opening(header);
      header.state = static_cast<std::uint32_t>(ChunkState::sealed);
      header.committed = format::Committed{static_cast<std::uint32_t>(payload.size()), 0}.word();
      write_chunk(header, payload);
      ++done_.totals.chunks;
      if (done_.aborted) return;
    }
  }

  [[nodiscard]] bool is_too_old(std::uint64_t end_monotonic) const noexcept {
    if (options_.keep == 0 || chunk_.header.what != format::ChunkClass::events) return false;
    return end_monotonic < newest_end_ && newest_end_ - end_monotonic > options_.keep;
  }

  void write_chunk(ChunkHeader& header, std::span<const std::uint8_t> payload) {
    header.payload_checksum = base::checksum(payload.data(), payload.size());
    header.coding = format::Coding::plain;
    std::span<const std::uint8_t> stored = payload;
    if (options_.pack.call != nullptr) {
      recoded_.resize(payload.size());
      const std::size_t recoded = format::recode(payload, recoded_);
      packed_.clear();
      if (!options_.pack.call(options_.pack.context,
                              recoded != 0 ? std::span(recoded_).first(recoded) : payload,
                              packed_)) {
        done_.aborted = true;
        return;
      }
      if (packed_.size() < payload.size()) {
        header.coding = recoded != 0 ? format::Coding::recoded_zstd : format::Coding::zstd;
        header.recoded = static_cast<std::uint32_t>(recoded);
        stored = packed_;
      }
    }
    header.stored = static_cast<std::uint32_t>(stored.size());
    format::seal_closing(header);
    ++chunks_;
    write(&header, sizeof header);
    write(stored.data(), stored.size());
  }

  void write(const void* data, std::size_t size) {
    if (done_.error != 0) return;
    done_.error = base::write_all(file_, data, size, static_cast<off_t>(done_.size));
    done_.size += size;
  }

  void write_header() {
    FileHeader header = source_.header();
    header.minor = format::kMinor;
    header.header_size = kHeaderSize;
    header.layout = format::Layout::compact;
    header.reserved = {};
    format::seal_opening(header);

    const bool ended = source_.closing_is_good() && header.state == FileState::ended;
    const bool closes = options_.close || source_.closed();
    header.state = ended ? FileState::ended : closes ? FileState::closed : FileState::recording;
    if (!ended) {
      header.reason = format::Reason::none;
      header.error = 0;
    }
    header.end_ticks = last_ticks_;
    header.end_monotonic = timeline_.monotonic_at(last_ticks_);
    header.unused = 0;
    header.journal = {};
    header.dropped = done_.totals.dropped;
    header.names_lost = done_.totals.names_lost;
    header.produced = closes ? done_.totals.produced() : 0;
    header.chunks = closes ? chunks_ : 0;
    header.reserved_too = {};
    header.closing_checksum = 0;
    if (closes) format::seal_closing(header);

    std::uint8_t page[kHeaderSize] = {};
    std::memcpy(page, &header, sizeof header);
    done_.error = base::write_all(file_, page, sizeof page, 0);
  }

  const Source& source_;
  int file_;
  const RewriteOptions& options_;
  Timeline timeline_;
  Loader loader_;
  Chunk chunk_{};
  std::vector<std::uint8_t> recoded_, packed_;
  std::uint64_t last_ticks_ = 0;
  std::uint64_t newest_end_ = 0;  // nanoseconds
  std::uint64_t chunks_ = 0;      // written
  std::uint64_t last_sequence_ = 0;
  Rewritten done_;
};

}  // namespace

Rewritten rewrite(const Source& source, int file, const RewriteOptions& options) {
  return Rewriter(source, file, options).run();
}

}  // namespace whence::read
