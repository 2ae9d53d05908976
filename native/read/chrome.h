// chrome.h: calls as events of the Chrome trace format, which is JSON.
//
// Threads: an encoder belongs to one. Allocates: a text for each function, its output.
// Fails by: std::bad_alloc.
//
// Each call is a B and an E event, in the order in which they happened in their thread: two calls
// that begin at one time are nested as they were. Every event ends with a comma and a newline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "read/call_encoder.h"
#include "read/functions.h"

namespace whence::read {

class ChromeCalls : public CallEncoder {
 public:
  // `names` and `budget` outlive it. `start`: what is added to times.
  ChromeCalls(const Names& names, Budget& budget, std::int64_t start, std::uint32_t process)
      : names_(names), functions_(names, budget), start_(start), process_(process) {}

  void take(const CallStep& step) override;

 private:
  void append(char phase, std::int64_t time, std::uint32_t thread);
  [[nodiscard]] const std::string& text_of(std::uint32_t function);

  const Names& names_;
  Functions functions_;
  std::int64_t start_;
  std::uint32_t process_;
  std::vector<std::string> texts_;  // name and file of functions, as members of an object
};

}  // namespace whence::read
