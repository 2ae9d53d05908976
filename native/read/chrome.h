// chrome.h: calls as events of the Chrome trace format, which is JSON.
//
// Threads: an encoder belongs to one. Allocates: a text for each function, 8 bytes for each call
// that is open, some 100 for each that waits, up to half a million; its output.
// Fails by: std::bad_alloc.
//
// Each call is one complete event, written when it ends; readers sort them by their beginning. They
// have nothing but their order in the file to tell which of two calls that begin at one time is
// around the other: so a call that begins with the one around it waits until that is written. Every
// event ends with a comma and a newline. Short calls that were counted together lie where the last
// of them ended, as far back as nothing else was.
#pragma once

#include <cstdint>
#include <limits>
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
  struct Thread {
    std::int64_t now = std::numeric_limits<std::int64_t>::min();
    std::vector<std::int64_t> starts;  // of the open calls
    std::vector<Call> waiting;         // as they ended; those that began last are behind the others
  };

  void end(const Call& call);
  void write(const Call& call);
  void write_waiting(Thread& thread, std::int64_t start);
  [[nodiscard]] const std::string& text_of(std::uint32_t function);

  const Names& names_;
  Functions functions_;
  std::int64_t start_;
  std::uint32_t process_;
  std::vector<std::string> texts_;  // name and file of functions, as members of an object
  IdMap<Thread> threads_;
  Thread* current_ = nullptr;
  std::uint64_t current_id_ = ~std::uint64_t{0};
};

}  // namespace whence::read
