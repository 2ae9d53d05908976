// ours.h: a thread that is about our own business, not the program's.
//
// Threads: each its own. Allocates: never. Fails by: it cannot.
//
// What it takes from allocators meanwhile is not recorded, and hooks in allocators pass on: so they
// never come back to what is half done. While it answers a question of the program's, in Python,
// what it takes is not recorded either; but what it gives back may be the program's, and is.
#pragma once

#include <cstdint>

namespace whence::base {

enum class Business : std::uint8_t { program, ours, answer };

namespace detail {
[[gnu::tls_model("initial-exec")]] extern thread_local constinit Business business;
}

class Ours {
 public:
  Ours() noexcept : before_(detail::business) { detail::business = Business::ours; }
  ~Ours() { detail::business = before_; }
  Ours(const Ours&) = delete;
  Ours& operator=(const Ours&) = delete;

 private:
  Business before_;
};

}  // namespace whence::base
