// arrow_calls.h: batches of calls as Arrow arrays.
//
// Threads: a table belongs to one; the arrays may be released by any. Allocates: a batch at a time,
// freed by whoever releases its last array. Fails by: Next; std::bad_alloc.
#pragma once

#include <cstddef>
#include <memory>

#include "read/arrow_arrays.h"
#include "read/arrow_table.h"
#include "read/call_columns.h"

namespace whence::read {

// What the columns are called and what they hold.
void export_call_schema(ArrowSchema& out);

class ArrowCalls : public ArrowTable {
 public:
  // All outlive it.
  ArrowCalls(const Source& source, const Names& names, const Timeline& timeline, Slice slice);

  [[nodiscard]] Next next(ArrowArray& out) override;
  [[nodiscard]] std::optional<std::int64_t> read_until() const noexcept override {
    return reader_.read_until();
  }

 private:
  struct Texts;  // dictionaries: the names and files of functions

  void renew_texts();

  const Names& names_;
  Budget budget_;
  CallReader reader_;
  Functions functions_;
  std::shared_ptr<const Texts> texts_;
};

}  // namespace whence::read
