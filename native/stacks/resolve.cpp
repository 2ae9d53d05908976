// resolve.cpp: see resolve.h.
#include "stacks/resolve.h"

#include "base/hash.h"
#include "base/lock.h"
#include "base/pages.h"
#include "base/segments.h"

namespace whence::stacks {
namespace {

constexpr std::string_view kUnknownName = "<unknown>";
constexpr std::string_view kTruncatedName = "<truncated>";

// The content hash of each stack by its id, 0 where nobody has asked yet. Written under the lock; a
// hash computed twice is the same twice.
struct HashMemo {
  base::Lock lock{base::Rank::memo};
  base::Segments<std::atomic<std::uint64_t>, 12> hashes;
};
constinit HashMemo memo;

std::uint64_t remembered(StackId id) noexcept {
  if (!memo.hashes.has(id)) return 0;
  return memo.hashes.at(id)->load(std::memory_order_relaxed);
}

void remember(StackId id, std::uint64_t hash) noexcept {
  const base::Holding holding(memo.lock);
  if (auto* slot = memo.hashes.ensure(id)) slot->store(hash, std::memory_order_relaxed);
}

}  // namespace

base::Lock& memo_lock() noexcept {
  return memo.lock;
}

namespace {

// Room for one id per frame: on the C stack for all but the deepest.
struct PathBuffer {
  static constexpr std::uint32_t kUsual = 512;

  explicit PathBuffer(std::uint32_t depth) noexcept
      : bytes(depth > kUsual ? depth * sizeof(StackId) : 0),
        ids(bytes != 0 ? static_cast<StackId*>(base::map_pages(bytes)) : usual) {}
  ~PathBuffer() {
    if (bytes != 0) base::unmap_pages(ids, bytes);
  }
  PathBuffer(const PathBuffer&) = delete;
  PathBuffer& operator=(const PathBuffer&) = delete;

  const std::size_t bytes;
  StackId usual[kUsual];
  StackId* const ids;
};

std::uint64_t hash_frame(std::uint64_t outer, StackId id) noexcept {
  const ResolvedFrame frame = resolve(id);
  return content_hash_step(outer, base::hash_bytes(frame.name.data(), frame.name.size()),
                           base::hash_bytes(frame.filename.data(), frame.filename.size()),
                           frame.place);
}

}  // namespace

std::string_view name_of(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::python: return "python";
    case FrameKind::truncated: return "truncated";
  }
  return {};
}

ResolvedFrame resolve(StackId id) noexcept {
  if (is_truncated(id)) return {FrameKind::truncated, kTruncatedName, {}, {}};
  const Node& node = store().stacks.node(id);
  const CodeFacts facts = store().codes.facts(node.code);
  if (node.code == kNoCode) return {FrameKind::python, kUnknownName, kUnknownName, {}};
  return {FrameKind::python, facts.name, facts.filename,
          base::locate(facts.line_table, facts.first_line, node.offset)};
}

std::uint64_t content_hash_step(std::uint64_t outer, std::uint64_t name_hash,
                                std::uint64_t filename_hash, base::Location place) noexcept {
  std::uint64_t hash = base::mix(base::mix(outer, name_hash), filename_hash);
  const auto pair = [](std::int32_t a, std::int32_t b) {
    return (std::uint64_t{static_cast<std::uint32_t>(a)} << 32) | static_cast<std::uint32_t>(b);
  };
  hash = base::mix(hash, pair(place.line, place.end_line));
  return base::mix(hash, pair(place.column, place.end_column)) |
         1;  // 0 means "not yet" in the memo
}

bool content_hash(StackId stack, std::uint64_t& hash) noexcept {
  const StackId whole = whole_part(stack);
  // Out to the nearest stack whose hash is known, then back in along the ids met on the way.
  const PathBuffer path(store().stacks.depth(whole));
  if (path.ids == nullptr) return false;
  std::size_t length = 0;
  StackId id = whole;
  for (; id != kEmpty && remembered(id) == 0; id = store().stacks.node(id).parent) {
    path.ids[length++] = id;
  }
  hash = id == kEmpty ? 0 : remembered(id);
  while (length != 0) {
    hash = hash_frame(hash, path.ids[--length]);
    remember(path.ids[length], hash);
  }
  if (is_truncated(stack)) hash = hash_frame(hash, kTruncated);
  return true;
}

}  // namespace whence::stacks
