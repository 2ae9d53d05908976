// line_maps.h: what lines of generated code came from, as a recording says it.
//
// Threads: any, once filled. Allocates: while it is filled, up to the budget that it is given.
// Fails by: no places for what there was no room for; std::bad_alloc.
//
//      <kernel 7>   line 3   ->  model.py:41 forward, train.py:9 step      until the next entry
//                   line 5   ->  nothing
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "read/budget.h"
#include "read/id_map.h"

namespace whence::read {

// A place in a source. Strings are numbers of the recording; -1 is "not known".
struct SourcePlace {
  std::uint64_t name, filename;
  std::int64_t line, column, end_line, end_column;
};

class LineMaps {
 public:
  static constexpr std::size_t kMostPlaces = 30;  // of one line; further ones are left out

  void add(std::uint64_t file, std::span<const std::uint8_t> part, Budget& budget);
  void finish();  // all parts are there

  [[nodiscard]] bool has(std::uint64_t file) const noexcept { return maps_.contains(file); }
  // Innermost first; empty if it came from nowhere.
  [[nodiscard]] std::span<const SourcePlace> places(std::uint64_t file,
                                                    std::int64_t line) const noexcept;
  // Those of the first line in [from, to] that came from somewhere.
  [[nodiscard]] std::span<const SourcePlace> first_places(std::uint64_t file, std::int64_t from,
                                                          std::int64_t to) const noexcept;

 private:
  struct LineMap {
    std::uint64_t number = 0;
    std::map<std::int64_t, std::vector<SourcePlace>> entries;  // by the first line of each
  };

  IdMap<LineMap> maps_;  // by file
};

}  // namespace whence::read
