// work_sources.cpp: see work_sources.h.
#include "read/work_sources.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace whence::read {
namespace {

using handles::kNone;

// The tables, which a packed file has in a few bytes a handle.
constexpr std::uint64_t kLeastForTables = 128u << 20;
constexpr std::uint64_t kTablesPerByte = 2;  // of 16 bytes each, see Budget
// What is made when it is asked for has this much, and as much as the tables take.
constexpr std::uint64_t kLeastBudget = 64u << 20;
constexpr std::uint64_t kSpare = 8u << 20;
constexpr std::size_t kMostEnds = 100;    // handles that one was made from
constexpr std::size_t kMostMet = 10'000;  // handles, on the way there
constexpr std::size_t kMostNamed = 4;     // of those that one was made from
// Looking costs time, which comes out of the same budget: a file cannot ask for more than it paid.
constexpr std::size_t kPlaceCost = 32;

// False for what is no namespace.
bool read_hex(std::string_view text, handles::Namespace& bytes) noexcept {
  if (text.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* begin = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, bytes[i], 16);
    if (end != begin + 2) return false;
  }
  return true;
}

}  // namespace

Backend split_backend(std::string_view text) noexcept {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return {{}, text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

void WorkSources::begin(std::uint64_t file_size) noexcept {
  tables_budget_ = Budget(kLeastForTables, kTablesPerByte * file_size);
}

void WorkSources::add(std::uint64_t stream, std::span<const std::uint8_t> part) {
  if (!tables_budget_.afford(kEntryCost + 2 * part.size())) return;
  streams_[stream].append(reinterpret_cast<const char*>(part.data()), part.size());
}

// A table that found no room while recording is cut, and the next one follows: each begins with
// what no other part of it has, as good as surely.
void WorkSources::finish() {
  const std::string_view magic(reinterpret_cast<const char*>(handles::kMagic.data()),
                               handles::kMagic.size());
  for (auto& [stream, bytes] : streams_) {
    std::string_view rest = bytes;
    while ((rest = rest.substr(std::min(rest.find(magic), rest.size()))).size() >=
           sizeof(handles::FileHeader)) {
      handles::FileHeader header;
      std::memcpy(static_cast<void*>(&header), rest.data(), sizeof header);
      const std::string_view table =
          rest.substr(0, std::min<std::uint64_t>(header.size, rest.size()));
      const std::span bytes_of(reinterpret_cast<const std::uint8_t*>(table.data()), table.size());
      if (!tables_budget_.afford(table.size() + handles::decoded_size(bytes_of))) break;
      handles::Loaded loaded = handles::decode(bytes_of);
      if (loaded.problem != handles::Problem::none) {
        rest = rest.substr(magic.size());
        continue;
      }
      for (Part& part : loaded.parts) parts_.push_back(std::move(part));
      tables_.emplace_back(table);
      rest = rest.substr(table.size());
    }
    bytes = std::string();
  }
  streams_.clear();
  std::uint64_t size = 0;
  for (const std::string& table : tables_) size += table.size();
  budget_ = Budget(kLeastBudget, size);
  spare_ = Budget(kSpare, 0);
  std::size_t records_in_all = 0;
  for (const Part& part : parts_) records_in_all += part.columns.records.size();
  if (tables_budget_.afford(sizeof handles_[0] * records_in_all)) handles_.reserve(records_in_all);
  for (std::uint32_t part = 0; part < parts_.size(); ++part) {
    const auto& records = parts_[part].columns.records;
    if (handles_.capacity() - handles_.size() < records.size()) break;
    for (const handles::Record& record : records) handles_.emplace_back(record.handle, part);
  }
  std::sort(handles_.begin(), handles_.end());
  const std::uint64_t name = intern("<work>");
  static_cast<void>(make_code({name, name, 0, 0, 0}));  // kMade: what nothing more is known of
}

// A later table of a namespace has what is new since an earlier one, or all of it; then the later
// one counts. Without a namespace, the handle must be of one alone.
WorkSources::End WorkSources::find(std::int64_t handle, const handles::Namespace* name_space) {
  End found{nullptr, nullptr};
  const auto after = std::ranges::upper_bound(handles_, std::pair(handle, ~std::uint32_t{0}));
  for (auto at = after; at != handles_.begin() && std::prev(at)->first == handle; --at) {
    const Part& part = parts_[std::prev(at)->second];
    if (name_space != nullptr && part.name_space != *name_space) continue;
    if (found.part != nullptr && found.part->name_space != part.name_space) {
      return {nullptr, nullptr};
    }
    if (found.part == nullptr) {
      found = {&part, &part.columns.records[part.columns.find(handle)]};
      if (name_space != nullptr) break;
    }
    if (!budget_.afford(1)) break;
  }
  return found;
}

// Those with a place of their own, or made from nothing, that this one was made from. What passes
// have made in between says nothing, so it does not count.
std::vector<WorkSources::End> WorkSources::ends_of(End first) {
  std::vector<End> waiting{first}, ends;
  std::unordered_set<const handles::Record*> met{first.record};
  for (std::size_t next = 0; next < waiting.size() && ends.size() < kMostEnds; ++next) {
    const End end = waiting[next];
    const handles::Columns& columns = end.part->columns;
    const auto place = static_cast<std::uint32_t>(end.record - columns.records.data());
    const handles::Edge* edge = end.record->range == kNone ? columns.edge_of(place) : nullptr;
    if (edge == nullptr) {
      ends.push_back(end);
      continue;
    }
    for (std::uint32_t i = 0; i < edge->parents && waiting.size() < kMostMet; ++i) {
      const std::int64_t handle = columns.parents[edge->first_parent + i];
      End parent = find(handle, &end.part->name_space);
      if (parent.part == nullptr) parent = find(handle, nullptr);
      if (parent.part == nullptr || !met.insert(parent.record).second) continue;
      if (!budget_.afford(kPlaceCost)) return ends;
      waiting.push_back(parent);
    }
  }
  return ends;
}

WorkPath WorkSources::path(const Work& work) {
  const std::lock_guard holding(making_);
  const auto key = std::tuple(work.backend, work.name, work.handle);
  const auto found = paths_.find(key);
  if (found != paths_.end()) return found->second;
  if (!budget_.afford(kEntryCost)) return make_plainly(work);
  return paths_.emplace(key, make(work)).first->second;
}

// There is no room for where it came from. Then it has its name at least.
WorkPath WorkSources::make_plainly(const Work& work) {
  const auto found = plain_.find(work.name);
  if (found != plain_.end()) return {{}, found->second};
  if (work.name == 0 || !spare_.afford(2 * kEntryCost)) return {{}, kMade};
  const std::uint64_t code = make_code({work.name, work.name, 0, 0, 0});
  plain_.emplace(work.name, code);
  return {{}, code};
}

WorkPath WorkSources::make(const Work& work) {
  const Backend backend = split_backend(work.backend_text);
  std::string name(work.name_text.substr(0, kLongestText));
  name += " (";
  name += backend.name.substr(0, kLongestText);
  name += ')';
  handles::Namespace own;
  const bool is_told = read_hex(backend.name_space, own);
  const End known = find(work.handle, is_told ? &own : nullptr);
  const std::vector<End> ends = known.part != nullptr ? ends_of(known) : std::vector<End>();
  if (ends.empty()) return {{}, place(nullptr, std::move(name), kNone)};
  std::span<const std::uint64_t> path = sites(ends.front());
  for (const End& end : std::span(ends).subspan(1)) {
    const auto common = std::ranges::mismatch(path, sites(end)).in1 - path.begin();
    path = path.first(static_cast<std::size_t>(common));
  }
  name += modules(ends);
  if (ends.size() > 1) {
    const std::string_view file = file_of(ends.front().part->columns, *ends.front().record);
    name += ", from ";
    for (std::size_t i = 0; i < std::min(ends.size(), kMostNamed); ++i) {
      if (i != 0) name += ", ";
      name += place_text(ends[i].part->columns, *ends[i].record, file);
    }
    if (ends.size() > kMostNamed) {
      name += " and " + std::to_string(ends.size() - kMostNamed) + " more";
    }
  }
  return {path, place(&ends.front().part->columns, std::move(name), ends.front().record->range)};
}

// The modules around all of them; and for one alone, what it is there.
std::string WorkSources::modules(std::span<const End> ends) {
  const End& first = ends.front();
  std::span<const Level> common = levels(first);
  for (const End& end : ends.subspan(1)) {
    if (!budget_.afford(common.size())) return {};
    const auto same = std::ranges::mismatch(common, levels(end)).in1 - common.begin();
    common = common.first(static_cast<std::size_t>(same));
  }
  std::string text = hierarchy(common);
  if (text.empty()) return text;
  if (ends.size() == 1) {
    text += '.';
    text += text_of(first.part->columns, first.record->kind);
  }
  return " in " + text;
}

std::span<const Level> WorkSources::levels(const End& end) {
  const handles::Columns& columns = end.part->columns;
  const auto [found, is_new] = levels_.try_emplace({&columns, end.record->stack});
  if (!is_new || !budget_.afford(kEntryCost)) return found->second;
  std::vector<Level> made = levels_of(columns, end.record->stack);
  if (budget_.afford(made.size() * sizeof(Level))) found->second = std::move(made);
  return found->second;
}

// The calls around it that were inlined: where each is, in the function that makes it.
std::span<const std::uint64_t> WorkSources::sites(const End& end) {
  const handles::Columns& columns = end.part->columns;
  if (end.record->stack == kNone) return {};
  const auto [found, is_new] = sites_.try_emplace({&columns, end.record->stack});
  std::vector<std::uint64_t>& path = found->second;
  if (!is_new || !budget_.afford(kEntryCost)) return path;
  std::string name(columns.top != kNone ? text_of(columns, columns.top) : "<top>");
  for (const handles::Call* call : calls_of(columns, end.record->stack)) {
    path.push_back(place(&columns, std::move(name), call->range));
    name = text_of(columns, call->function);
  }
  return path;
}

// kMade once the budget is spent.
std::uint64_t WorkSources::place(const handles::Columns* columns, std::string name,
                                 std::uint32_t range) {
  if (!budget_.afford(kPlaceCost)) return kMade;
  const std::uint64_t text = intern(std::move(name));
  std::uint64_t filename = 0;
  std::int64_t line = 0;
  if (range != kNone) {
    const handles::Range& at = columns->ranges[range];
    filename = file(*columns, at.filename);
    line = at.line;
  }
  const auto [found, is_new] =
      codes_.try_emplace(std::tuple(text, filename, line), kMade + made_codes_.size());
  return is_new ? make_code({text, text, filename, 0, line}) : found->second;
}

// A name of a file may be long: it is looked at once.
std::uint64_t WorkSources::file(const handles::Columns& columns, std::uint32_t string) {
  const auto [found, is_new] = files_.try_emplace({&columns, string}, 0);
  if (is_new) found->second = intern(std::string(columns.strings[string]));
  return found->second;
}

std::uint64_t WorkSources::make_code(const CodeEntry& entry) {
  made_codes_.push_back(entry);
  return kMade + made_codes_.size() - 1;
}

std::uint64_t WorkSources::left_out() const noexcept {
  const std::lock_guard holding(making_);
  return tables_budget_.refused() + budget_.refused() + spare_.refused();
}

std::uint64_t WorkSources::intern(std::string text) {
  const auto found = strings_.find(text);
  if (found != strings_.end()) return found->second;
  if (!budget_.afford(kEntryCost + text.size())) return 0;
  const std::uint64_t id = kMade + made_strings_.size();
  made_strings_.push_back(&strings_.emplace(std::move(text), id).first->first);
  return id;
}

const CodeEntry* WorkSources::code(std::uint64_t id) const noexcept {
  const std::lock_guard holding(making_);
  return id - kMade < made_codes_.size() ? &made_codes_[id - kMade] : nullptr;
}

const std::string* WorkSources::string(std::uint64_t id) const noexcept {
  const std::lock_guard holding(making_);
  return id - kMade < made_strings_.size() ? made_strings_[id - kMade] : nullptr;
}

}  // namespace whence::read
