// arrow_arrays.cpp: see arrow_arrays.h.
#include "read/arrow_arrays.h"

#include <utility>

#include "base/text.h"

namespace whence::read {
namespace {

// What one array needs as long as it is not released.
struct Holder {
  ArrowBatch batch;
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

Holder& make_array(ArrowArray& out, ArrowBatch batch, std::size_t rows) {
  auto holder = std::make_unique<Holder>();
  holder->batch = std::move(batch);
  out = {};
  out.length = static_cast<std::int64_t>(rows);
  out.buffers = holder->buffers;
  out.release = release_array;
  out.private_data = holder.get();
  return *holder.release();
}

void make_texts(ArrowArray& out, const ArrowBatch& batch, const ArrowTexts& texts) {
  Holder& holder = make_array(out, batch, texts.offsets.size() - 1);
  holder.buffers[1] = texts.offsets.data();
  holder.buffers[2] = texts.bytes.data();
  out.n_buffers = 3;
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

void ArrowTexts::add(std::string_view text) {
  base::append_utf8(bytes, text);
  offsets.push_back(static_cast<std::int32_t>(bytes.size()));
}

void export_schema(std::span<const ArrowColumn> columns, ArrowSchema& out) {
  SchemaHolder& holder = make_schema(out, "+s", "", false);
  holder.children.resize(columns.size());
  holder.places.reserve(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ArrowColumn& column = columns[i];
    SchemaHolder& child =
        make_schema(holder.children[i], column.format, column.name, column.nullable);
    if (column.has_texts) {
      make_schema(child.dictionary, "u", "", true);
      holder.children[i].dictionary = &child.dictionary;
    }
    holder.places.push_back(&holder.children[i]);
  }
  out.n_children = static_cast<std::int64_t>(holder.places.size());
  out.children = holder.places.data();
}

ArrowBuilder::ArrowBuilder(ArrowArray& out, ArrowBatch batch, std::size_t rows, std::size_t columns)
    : batch_(std::move(batch)), rows_(rows) {
  Holder& holder = make_array(out, batch_, rows);
  out.n_buffers = 1;
  holder.children.resize(columns);
  for (ArrowArray& child : holder.children) holder.places.push_back(&child);
  out.n_children = static_cast<std::int64_t>(holder.places.size());
  out.children = next_ = holder.places.data();
}

void ArrowBuilder::add(const void* values, const ArrowValidity* validity, const ArrowTexts* texts) {
  ArrowArray& out = **next_++;
  Holder& holder = make_array(out, batch_, rows_);
  holder.buffers[1] = values;
  out.n_buffers = 2;
  if (validity != nullptr && validity->missing != 0) {
    holder.buffers[0] = validity->bits.data();
    out.null_count = validity->missing;
  }
  if (texts == nullptr) return;
  make_texts(holder.dictionary, batch_, *texts);
  out.dictionary = &holder.dictionary;
}

}  // namespace whence::read
