// arrow_calls.cpp: see arrow_calls.h.
//
// A batch is one piece of memory that all of its arrays share. Names and files are dictionaries by
// the number of the function, and grow from batch to batch: a number means the same in all.
#include "read/arrow_calls.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace whence::read {
namespace {

constexpr std::size_t kRows = 1 << 16;
constexpr std::uint64_t kLeastBudget = 16u << 20;

enum class Dictionary { none, names, files, entered, left };

struct Column {
  const char* name;
  const char* format;  // of numbers, or of the numbers in a dictionary of texts
  bool nullable;
  Dictionary dictionary = Dictionary::none;
};

constexpr std::array kColumns = {
    Column{"start", "l", false},
    Column{"duration", "l", false},
    Column{"own", "l", false},
    Column{"depth", "I", false},
    Column{"function", "I", true, Dictionary::names},
    Column{"filename", "I", true, Dictionary::files},
    Column{"line", "l", true},
    Column{"thread", "I", false},
    Column{"task", "L", true},
    Column{"parent", "L", true},
    Column{"number", "L", false},
    Column{"generator", "L", true},
    Column{"entered", "C", false, Dictionary::entered},
    Column{"left", "C", false, Dictionary::left},
    Column{"count", "L", false},
};

struct TextColumn {
  std::vector<std::int32_t> offsets = {0};
  std::string bytes;

  void add(std::string_view text) {
    base::append_utf8(bytes, text);
    offsets.push_back(static_cast<std::int32_t>(bytes.size()));
  }
};

TextColumn texts_of(std::initializer_list<const char*> all) {
  TextColumn made;
  for (const char* text : all) made.add(text);
  return made;
}

const TextColumn& entered_texts() {
  static const TextColumn texts = texts_of({"call", "resume", "throw", "open"});
  return texts;
}
const TextColumn& left_texts() {
  static const TextColumn texts =
      texts_of({"return", "unwind", "yield", "gone", "unstarted", "cut"});
  return texts;
}

// Bits, one a row: is there a value?
struct Validity {
  std::vector<std::uint8_t> bits;
  std::int64_t missing = 0;

  template <class IsThere>
  void fill(std::size_t rows, IsThere&& is_there) {
    bits.assign((rows + 7) / 8, 0);
    for (std::size_t row = 0; row < rows; ++row) {
      const bool there = is_there(row);
      bits[row / 8] = static_cast<std::uint8_t>(bits[row / 8] | there << row % 8);
      missing += !there;
    }
  }
};

// What all arrays of a batch keep alive.
struct Batch {
  std::unique_ptr<std::uint8_t[]> memory;
  CallColumns columns;
  std::vector<std::int64_t> lines;
  Validity functions, files, tasks, parents, generators;
  std::shared_ptr<const void> texts;
};

// What one array needs as long as it is not released.
struct Holder {
  std::shared_ptr<const Batch> batch;
  const void* buffers[3] = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> places;
  ArrowArray dictionary = {};
};

void release_array(ArrowArray* array) {
  const auto* holder = static_cast<Holder*>(array->private_data);
  for (std::int64_t i = 0; i < array->n_children; ++i) {
    ArrowArray* child = array->children[i];
    if (child->release != nullptr) child->release(child);
  }
  if (array->dictionary != nullptr && array->dictionary->release != nullptr) {
    array->dictionary->release(array->dictionary);
  }
  array->release = nullptr;
  delete holder;
}

Holder& make_array(ArrowArray& out, std::shared_ptr<const Batch> batch, std::size_t rows) {
  auto holder = std::make_unique<Holder>();
  holder->batch = std::move(batch);
  out = {};
  out.length = static_cast<std::int64_t>(rows);
  out.buffers = holder->buffers;
  out.release = release_array;
  out.private_data = holder.get();
  return *holder.release();
}

void make_texts(ArrowArray& out, const std::shared_ptr<const Batch>& batch,
                const TextColumn& texts) {
  Holder& holder = make_array(out, batch, texts.offsets.size() - 1);
  holder.buffers[1] = texts.offsets.data();
  holder.buffers[2] = texts.bytes.data();
  out.n_buffers = 3;
}

void make_column(ArrowArray& out, const std::shared_ptr<const Batch>& batch, std::size_t rows,
                 const void* values, const Validity* validity, const TextColumn* texts) {
  Holder& holder = make_array(out, batch, rows);
  holder.buffers[1] = values;
  out.n_buffers = 2;
  if (validity != nullptr && validity->missing != 0) {
    holder.buffers[0] = validity->bits.data();
    out.null_count = validity->missing;
  }
  if (texts == nullptr) return;
  make_texts(holder.dictionary, batch, *texts);
  out.dictionary = &holder.dictionary;
}

struct SchemaHolder {
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> places;
  ArrowSchema dictionary = {};
};

void release_schema(ArrowSchema* schema) {
  const auto* holder = static_cast<SchemaHolder*>(schema->private_data);
  for (std::int64_t i = 0; i < schema->n_children; ++i) {
    ArrowSchema* child = schema->children[i];
    if (child->release != nullptr) child->release(child);
  }
  if (schema->dictionary != nullptr && schema->dictionary->release != nullptr) {
    schema->dictionary->release(schema->dictionary);
  }
  schema->release = nullptr;
  delete holder;
}

SchemaHolder& make_schema(ArrowSchema& out, const char* format, const char* name, bool nullable) {
  auto holder = std::make_unique<SchemaHolder>();
  out = {};
  out.format = format;
  out.name = name;
  out.flags = nullable ? kArrowNullable : 0;
  out.release = release_schema;
  out.private_data = holder.get();
  return *holder.release();
}

}  // namespace

struct ArrowCalls::Texts {
  TextColumn names, files;
};

void export_call_schema(ArrowSchema& out) {
  SchemaHolder& holder = make_schema(out, "+s", "", false);
  holder.children.resize(kColumns.size());
  holder.places.reserve(kColumns.size());
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const Column& column = kColumns[i];
    SchemaHolder& child =
        make_schema(holder.children[i], column.format, column.name, column.nullable);
    if (column.dictionary != Dictionary::none) {
      make_schema(child.dictionary, "u", "", true);
      holder.children[i].dictionary = &child.dictionary;
    }
    holder.places.push_back(&holder.children[i]);
  }
  out.n_children = static_cast<std::int64_t>(holder.places.size());
  out.children = holder.places.data();
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
  const auto add = [&](TextColumn& column, std::uint64_t string) {
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
  for (std::size_t row = 0; row < rows; ++row) batch->lines[row] = function(row).line;
  batch->functions.fill(rows, [&](std::size_t row) { return function(row).name != 0; });
  batch->files.fill(rows, [&](std::size_t row) { return function(row).filename != 0; });
  batch->tasks.fill(rows, [&](std::size_t row) { return c.task[row] != 0; });
  batch->parents.fill(rows, [&](std::size_t row) { return c.parent[row] != 0; });
  batch->generators.fill(rows, [&](std::size_t row) { return c.generator[row] != 0; });

  Holder& holder = make_array(out, batch, rows);
  out.n_buffers = 1;
  holder.children.resize(kColumns.size());
  for (ArrowArray& child : holder.children) holder.places.push_back(&child);
  out.n_children = static_cast<std::int64_t>(holder.places.size());
  out.children = holder.places.data();
  std::size_t next = 0;
  const auto add = [&](const void* values, const Validity* validity = nullptr,
                       const TextColumn* texts = nullptr) {
    make_column(holder.children[next++], batch, rows, values, validity, texts);
  };
  add(c.start), add(c.duration), add(c.own), add(c.depth);
  add(c.function, &batch->functions, &texts_->names);
  add(c.function, &batch->files, &texts_->files);
  add(batch->lines.data(), &batch->files);
  add(c.thread), add(c.task, &batch->tasks), add(c.parent, &batch->parents), add(c.number);
  add(c.generator, &batch->generators);
  add(c.entered, nullptr, &entered_texts()), add(c.left, nullptr, &left_texts()), add(c.count);
  return Next::record;
}

}  // namespace whence::read
