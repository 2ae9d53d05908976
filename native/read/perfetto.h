// perfetto.h: calls as slices of a Perfetto trace.
//
// Threads: an encoder belongs to one. Allocates: a bit for each function and thread, its output.
// Fails by: std::bad_alloc.
//
// A trace is a sequence of packets, so what this writes can follow and precede packets of others.
// Each thread is a packet sequence of its own with a clock of its own, in which every time is a
// difference to the one before: so a slice takes some 25 bytes. Names are written once a sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "read/call_encoder.h"
#include "read/functions.h"

namespace whence::read {

class PerfettoCalls : public CallEncoder {
 public:
  // `names` and `budget` outlive it. `start`: what is added to times. A thread's track is
  // `first_track` and its number; its sequence the same of `first_sequence`.
  PerfettoCalls(const Names& names, Budget& budget, std::int64_t start, std::uint64_t first_track,
                std::uint32_t first_sequence)
      : names_(names),
        functions_(names, budget),
        start_(start),
        first_track_(first_track),
        first_sequence_(first_sequence) {}

  void take(const CallStep& step) override;

 private:
  struct Thread {
    std::int64_t now = 0;
    std::vector<bool> known;  // functions whose names this sequence has
    bool begun = false;
  };

  void begin_sequence(Thread& thread, std::uint32_t id, std::int64_t now);
  void name_function(std::uint32_t function, std::uint64_t id);
  void put_event(std::int64_t now, std::uint64_t id);

  const Names& names_;
  Functions functions_;
  std::int64_t start_;
  std::uint64_t first_track_;
  std::uint32_t first_sequence_;
  IdMap<Thread> threads_;
  Thread* current_ = nullptr;
  std::uint32_t current_id_ = 0;
  std::string packet_, part_, inner_;
};

}  // namespace whence::read
