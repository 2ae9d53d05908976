// work_sources.h: where work of a lowered program came from, as code that calls can be of.
//
// Threads: any, once filled; what is made when it is first asked for is made under a lock.
// Allocates: the tables, and entries for the handles that are asked for, up to a budget.
// Fails by: a path without a place, at last without a name; std::bad_alloc.
//
//      handle 7  ->  net.Model   model.ex:3        the call that was inlined
//                    mul (c)     layers.ex:8       the work itself
//
// A recording has tables of handles and work that names handles. The reader of calls shows work as
// calls, so each place on the way from the outermost one becomes a code entry, under numbers that
// no file uses.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "handles/decode.h"
#include "read/budget.h"
#include "read/code_entry.h"
#include "read/handle_texts.h"
#include "read/id_map.h"

namespace whence::read {

// The backend of work as it was told: whose handles it has, and its name.
struct Backend {
  std::string_view name_space;  // empty: not told
  std::string_view name;
};
[[nodiscard]] Backend split_backend(std::string_view text) noexcept;

// Code that work is shown as: the calls that were inlined around it, outermost first, and itself.
struct WorkPath {
  std::span<const std::uint64_t> sites;
  std::uint64_t work;
};

class WorkSources {
 public:
  // Numbers from here on are made here, of strings and of code.
  static constexpr std::uint64_t kMade = std::uint64_t{1} << 63;

  // While it is filled, from a file of that size: a part of the tables of one namespace, as they
  // come; then all are there.
  void begin(std::uint64_t file_size) noexcept;
  void add(std::uint64_t stream, std::span<const std::uint8_t> part);
  void finish();

  struct Work {
    std::uint64_t backend;  // strings, and what they say
    std::uint64_t name;
    std::int64_t handle;
    std::string_view backend_text, name_text;
  };
  // Stays valid.
  [[nodiscard]] WorkPath path(const Work& work);

  [[nodiscard]] const CodeEntry* code(std::uint64_t id) const noexcept;
  [[nodiscard]] const std::string* string(std::uint64_t id) const noexcept;
  // What there was no room for.
  [[nodiscard]] std::uint64_t left_out() const noexcept;
  // The bytes of each table.
  [[nodiscard]] const std::vector<std::string>& tables() const noexcept { return tables_; }

 private:
  using Part = handles::LoadedPart;
  // A handle that nothing further is behind, in its table.
  struct End {
    const Part* part;
    const handles::Record* record;
    bool operator==(const End&) const = default;
  };

  [[nodiscard]] End find(std::int64_t handle, const handles::Namespace* name_space);
  [[nodiscard]] std::vector<End> ends_of(End first);
  [[nodiscard]] WorkPath make(const Work& work);
  [[nodiscard]] WorkPath make_plainly(const Work& work);
  [[nodiscard]] std::string modules(std::span<const End> ends);
  [[nodiscard]] std::span<const Level> levels(const End& end);
  [[nodiscard]] std::span<const std::uint64_t> sites(const End& end);
  [[nodiscard]] std::uint64_t place(const handles::Columns* columns, std::string name,
                                    std::uint32_t range);
  [[nodiscard]] std::uint64_t file(const handles::Columns& columns, std::uint32_t string);
  [[nodiscard]] std::uint64_t intern(std::string text);
  [[nodiscard]] std::uint64_t make_code(const CodeEntry& entry);

  Budget tables_budget_;
  IdMap<std::string> streams_;
  std::vector<std::string> tables_;
  std::deque<Part> parts_;
  // Every handle with the place of its part, by handle, then by part.
  std::vector<std::pair<std::int64_t, std::uint32_t>> handles_;

  mutable std::mutex making_;
  Budget budget_, spare_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::int64_t>, WorkPath> paths_;
  IdMap<std::uint64_t> plain_;  // code of work by its name, once the budget is spent
  std::map<std::pair<const handles::Columns*, std::uint32_t>, std::vector<std::uint64_t>> sites_;
  std::map<std::pair<const handles::Columns*, std::uint32_t>, std::vector<Level>> levels_;
  std::map<std::pair<const handles::Columns*, std::uint32_t>, std::uint64_t> files_;
  std::map<std::string, std::uint64_t, std::less<>> strings_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::int64_t>, std::uint64_t> codes_;
  std::deque<const std::string*> made_strings_;
  std::deque<CodeEntry> made_codes_;
};

}  // namespace whence::read
