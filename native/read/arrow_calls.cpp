// arrow_calls.cpp: see arrow_calls.h.
//
// A batch is one piece of memory that all of its arrays share. Names and files are dictionaries by
// the number of the function, and grow from batch to batch: a number means the same in all batches
// of one recording.
#include "read/arrow_calls.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace whence::read {
namespace {

constexpr std::size_t kRows = 1 << 16;
constexpr std::uint64_t kLeastBudget = 16u << 20;

constexpr std::array kColumns = {
    ArrowColumn{"start", "l", false},         ArrowColumn{"duration", "l", false},
    ArrowColumn{"own", "l", false},           ArrowColumn{"depth", "I", false},
    ArrowColumn{"function", "I", true, true}, ArrowColumn{"filename", "I", true, true},
    ArrowColumn{"line", "l", true},           ArrowColumn{"thread", "I", false},
    ArrowColumn{"task", "L", true},           ArrowColumn{"parent", "L", true},
    ArrowColumn{"number", "L", false},        ArrowColumn{"generator", "L", true},
    ArrowColumn{"entered", "C", false, true}, ArrowColumn{"left", "C", false, true},
    ArrowColumn{"count", "L", false},
};

ArrowTexts texts_of(std::initializer_list<const char*> all) {
  ArrowTexts made;
  for (const char* text : all) made.add(text);
  return made;
}

const ArrowTexts& entered_texts() {
  static const ArrowTexts texts = texts_of({"call", "resume", "throw", "open"});
  return texts;
}
const ArrowTexts& left_texts() {
  static const ArrowTexts texts =
      texts_of({"return", "unwind", "yield", "gone", "unstarted", "cut"});
  return texts;
}

// What all arrays of a batch keep alive.
struct Batch {
  std::unique_ptr<std::uint8_t[]> memory;
  CallColumns columns;
  std::vector<std::int64_t> lines;
  ArrowValidity functions, files, line_validity, tasks, parents, generators;
  std::shared_ptr<const void> texts;
};

}  // namespace

struct ArrowCalls::Texts {
  ArrowTexts names, files;
};

void export_call_schema(ArrowSchema& out) {
  export_schema(kColumns, out);
}

ArrowCalls::ArrowCalls(const Source& source, const Names& names, const Timeline& timeline,
                       Slice slice)
    : names_(names),
      budget_(kLeastBudget, source.input().size()),
      reader_(source, names, timeline, std::move(slice)),
      functions_(names, budget_) {}

void ArrowCalls::renew_texts() {
  const std::vector<Function>& all = functions_.all();
  if (texts_ != nullptr && texts_->names.offsets.size() == all.size() + 1) return;
  auto made = std::make_shared<Texts>();
  const auto add = [&](ArrowTexts& column, std::uint64_t string) {
    const std::string* text = names_.string(string);
    column.add(text != nullptr ? *text : std::string_view());
  };
  for (const Function& function : all) {
    add(made->names, function.name);
    add(made->files, function.filename);
  }
  texts_ = std::move(made);
}

Next ArrowCalls::next(ArrowArray& out) {
  auto batch = std::make_shared<Batch>();
  batch->memory = std::make_unique_for_overwrite<std::uint8_t[]>(kRows * CallColumns::kRow);
  batch->columns = CallColumns::in(batch->memory.get(), kRows);
  std::size_t rows;
  const Next got = fill(reader_, functions_, batch->columns, kRows, rows);
  if (got == Next::aborted || rows == 0) return got == Next::record ? Next::end : got;
  renew_texts();
  batch->texts = texts_;

  const CallColumns& c = batch->columns;
  const std::vector<Function>& all = functions_.all();
  const Function unknown{};
  const auto function = [&](std::size_t row) -> const Function& {
    return c.function[row] < all.size() ? all[c.function[row]] : unknown;
  };
  batch->lines.resize(rows);
  for (std::size_t row = 0; row < rows; ++row) batch->lines[row] = function(row).line.value_or(0);
  batch->functions.fill(rows, [&](std::size_t row) { return function(row).name != 0; });
  batch->files.fill(rows, [&](std::size_t row) { return function(row).filename != 0; });
  batch->line_validity.fill(rows, [&](std::size_t row) { return function(row).line.has_value(); });
  batch->tasks.fill(rows, [&](std::size_t row) { return c.task[row] != 0; });
  batch->parents.fill(rows, [&](std::size_t row) { return c.parent[row] != 0; });
  batch->generators.fill(rows, [&](std::size_t row) { return c.generator[row] != 0; });

  ArrowBuilder columns(out, batch, rows, kColumns.size());
  columns.add(c.start);
  columns.add(c.duration);
  columns.add(c.own);
  columns.add(c.depth);
  columns.add(c.function, &batch->functions, &texts_->names);
  columns.add(c.function, &batch->files, &texts_->files);
  columns.add(batch->lines.data(), &batch->line_validity);
  columns.add(c.thread);
  columns.add(c.task, &batch->tasks);
  columns.add(c.parent, &batch->parents);
  columns.add(c.number);
  columns.add(c.generator, &batch->generators);
  columns.add(c.entered, nullptr, &entered_texts());
  columns.add(c.left, nullptr, &left_texts());
  columns.add(c.count);
  return Next::record;
}

}  // namespace whence::read
