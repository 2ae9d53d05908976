// busy.h: nobody closes a reader that is being read.
//
// Threads: holders of the GIL. Allocates: never. Fails by: it cannot.
//
// The GIL is kept meanwhile, but for unpacking: a daemon thread that the interpreter ends while it
// waits for the GIL is unwound through all that is under way here.
#pragma once

#include "module/reader_type.h"

namespace whence::module {

class Busy {
 public:
  explicit Busy(ReaderObject* reader) noexcept : reader_(reader) { ++reader_->busy; }
  ~Busy() { --reader_->busy; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  ReaderObject* reader_;
};

}  // namespace whence::module
