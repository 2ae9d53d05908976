// resolve.cpp: see resolve.h.
#include "stacks/resolve.h"

#include "base/hash.h"
#include "base/lock.h"
#include "base/pages.h"
#include "base/segments.h"
#include "stacks/modules.h"

namespace whence::stacks {
namespace {

constexpr std::string_view kUnknownName = "<unknown>";
constexpr std::string_view kTruncatedName = "<truncated>";
constexpr std::string_view kGapName = "<native frames missing>";
constexpr std::string_view kUnmergedName = "<Python frames inside, native frames outside>";

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
  std::uint64_t name = base::hash_bytes(frame.name.data(), frame.name.size());
  if (frame.kind == FrameKind::native) name = base::mix(name, frame.address);
  return content_hash_step(
      outer, name, base::hash_bytes(frame.filename.data(), frame.filename.size()), frame.place);
}

// A run of Python frames, outermost first: as many steps out as there are still frames to hash.
std::uint64_t hash_node(std::uint64_t outer, StackId id) noexcept {
  const StackTable& table = store().stacks;
  if (!is_python_run(table.node(id).code)) return hash_frame(outer, id);
  const PythonRun run = python_run(table, id);
  const std::uint32_t count = table.depth(run.inner) - table.depth(run.outer);
  const PathBuffer path(count);
  if (path.ids == nullptr) return outer;
  StackId frame = run.inner;
  for (std::uint32_t i = 0; i < count; ++i, frame = table.node(frame).parent) path.ids[i] = frame;
  for (std::uint32_t i = count; i-- != 0;) outer = hash_frame(outer, path.ids[i]);
  return outer;
}

}  // namespace

std::string_view name_of(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::python: return "python";
    case FrameKind::native: return "native";
    case FrameKind::truncated: return "truncated";
    case FrameKind::unmerged: return "unmerged";
  }
  return {};
}

namespace {

ResolvedFrame resolve_native(const Node& node) noexcept {
  if (node.code == kRemark) {
    const bool gap = node.offset == static_cast<std::int32_t>(Remark::gap);
    return gap ? ResolvedFrame{FrameKind::truncated, kGapName, {}, {}}
               : ResolvedFrame{FrameKind::unmerged, kUnmergedName, {}, {}};
  }
  const Module& module = modules()[module_of(node.code)];
  return {FrameKind::native,
          {},
          base::names().get(module.path),
          {},
          base::names().get(module.build_id),
          static_cast<std::uint32_t>(node.offset)};
}

}  // namespace

ResolvedFrame resolve(StackId id) noexcept {
  if (is_truncated(id)) return {FrameKind::truncated, kTruncatedName, {}, {}};
  const Node& node = store().stacks.node(id);
  if (is_native(node.code)) return resolve_native(node);
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
    hash = hash_node(hash, path.ids[--length]);
    remember(path.ids[length], hash);
  }
  if (is_truncated(stack)) hash = hash_frame(hash, kTruncated);
  return true;
}

}  // namespace whence::stacks
