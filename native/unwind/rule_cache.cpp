// rule_cache.cpp: see rule_cache.h.
#include "unwind/rule_cache.h"

#include "base/pages.h"

namespace whence::unwind {

bool RuleCache::prepare() noexcept {
  constexpr std::size_t kBytes = kPairs * kWays * sizeof(Entry);
  if (entries_.load(std::memory_order_acquire) != nullptr) return true;
  auto* made = static_cast<Entry*>(base::map_pages(kBytes));
  if (made == nullptr) return false;
  Entry* there = nullptr;
  if (!entries_.compare_exchange_strong(there, made, std::memory_order_acq_rel)) {
    base::unmap_pages(made, kBytes);  // another thread was first
  }
  return true;
}

}  // namespace whence::unwind
