// arrow_arrays.h: columns of numbers and texts as Arrow arrays, for tables of any kind.
//
// Threads: making belongs to one; arrays and schemas may be released by any. Allocates: a few
// hundred bytes an array; the columns are the caller's. Fails by: std::bad_alloc.
//
// A batch is one thing that all of its arrays keep alive: whoever releases the last array frees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "read/arrow.h"

namespace whence::read {

using ArrowBatch = std::shared_ptr<const void>;

struct ArrowColumn {
  const char* name;
  const char* format;  // of numbers, or of the numbers in a dictionary of texts
  bool nullable;
  bool has_texts = false;
};

// A dictionary of texts; what is no UTF-8 is replaced.
struct ArrowTexts {
  std::vector<std::int32_t> offsets = {0};
  std::string bytes;

  void add(std::string_view text);
};

// Bits, one a row: is there a value?
struct ArrowValidity {
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

// What the columns are called and what they hold.
void export_schema(std::span<const ArrowColumn> columns, ArrowSchema& out);

// The columns of a batch, one after the other, all with the same number of rows.
class ArrowBuilder {
 public:
  ArrowBuilder(ArrowArray& out, ArrowBatch batch, std::size_t rows, std::size_t columns);

  // All of them belong to the batch.
  void add(const void* values, const ArrowValidity* validity = nullptr,
           const ArrowTexts* texts = nullptr);

 private:
  ArrowBatch batch_;
  std::size_t rows_;
  ArrowArray** next_;
};

}  // namespace whence::read
