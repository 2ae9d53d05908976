// arrow_calls.h: batches of calls as Arrow arrays.
//
// Threads: a table belongs to one; the arrays may be released by any. Allocates: a batch at a time,
// freed by whoever releases its last array. Fails by: Next; std::bad_alloc.
#pragma once

#include <cstddef>
#include <memory>

#include "read/arrow.h"
#include "read/call_columns.h"

namespace whence::read {

// What the columns are called and what they hold.
void export_call_schema(ArrowSchema& out);

class ArrowCalls {
 public:
  // All outlive it.
  ArrowCalls(const Source& source, const Names& names, const Timeline& timeline, Slice slice);

  ArrowCalls(const ArrowCalls&) = delete;
  ArrowCalls& operator=(const ArrowCalls&) = delete;

  // The next batch. Next::end: there is none, and `out` is not touched.
  [[nodiscard]] Next next(ArrowArray& out);

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
