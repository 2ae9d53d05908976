// call_encoder.h: calls, written in a format that others read.
//
// Threads: an encoder belongs to one. Allocates: what it has to remember of threads and functions,
// and its output. Fails by: std::bad_alloc.
#pragma once

#include <string>

#include "read/calls.h"

namespace whence::read {

class CallEncoder {
 public:
  virtual ~CallEncoder() = default;
  virtual void take(const CallStep& step) = 0;

  // What is written and has not been taken away yet.
  [[nodiscard]] std::string& output() noexcept { return out_; }

 protected:
  std::string out_;
};

}  // namespace whence::read
