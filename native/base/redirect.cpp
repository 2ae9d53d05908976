// redirect.cpp: see redirect.h.
#include "base/redirect.h"

#include <link.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "base/loaded_library.h"
#include "base/loader_lock.h"
#include "base/mappings.h"

namespace whence::base {
namespace {

// visit(library) for each, in the order in which they were loaded, under the loader's lock.
template <class Visit>
void for_each_library(Visit& visit) noexcept {
  const auto call = [](dl_phdr_info* info, std::size_t, void* context) noexcept {
    (*static_cast<Visit*>(context))(LoadedLibrary(*info));
    return 0;
  };
  const LoaderWalk under_way;
  dl_iterate_phdr(call, &visit);
}

bool is_ours(const LoadedLibrary& library) noexcept {
  return library.contains(reinterpret_cast<const void*>(&find_meanings));
}

// One walk over all libraries: each slot that leads from one place of a redirection to the other.
class Walk {
 public:
  // Forth, as long as it is wanted, or back.
  Walk(std::span<const Redirection> redirections, const std::atomic<bool>* wanted,
       Settled& settled) noexcept
      : redirections_(redirections), wanted_(wanted), forth_(wanted != nullptr), settled_(settled) {
    done_.complete = true;
  }

  void operator()(const LoadedLibrary& library) noexcept {
    const bool first = place_ == 0;
    if (first && (!forth_ || settled_.unloaded != library.unloaded_so_far())) {
      settled_ = {0, library.unloaded_so_far()};
    }
    ++place_;
    if (forth_ && !wanted_->load()) {
      done_.complete = false;
      return;
    }
    if (library.is_loader()) late_ = true;
    if (is_ours(library)) before_ours_ = false;
    if (place_ <= settled_.libraries) return;
    if (!library.is_loader() && !is_ours(library)) look_at(library);
    if (forth_ && done_.complete && done_.refused == 0) settled_.libraries = place_;
  }

  [[nodiscard]] Redirected done() const noexcept { return done_; }

 private:
  void look_at(const LoadedLibrary& library) noexcept {
    const bool loading = is_being_loaded(library);
    if (loading) done_.complete = false;
    bool open = false;
    library.for_each_slot([&](const void** slot, const char* name, bool lazy) {
      for (const Redirection& one : redirections_) {
        const void* meaning = one.meaning.load(std::memory_order_relaxed);
        if (meaning == nullptr || std::strcmp(one.name, name) != 0) continue;
        const void* now = std::atomic_ref(*slot).load(std::memory_order_relaxed);
        const bool sealed = library.is_sealed(slot);
        if (!forth_ && now == meaning) ++done_.passed_by;
        const bool unused = forth_ && lazy && library.contains(now);
        if (unused && late_ && is_ambiguous(one)) {
          ++done_.refused;
        } else if ((now == (forth_ ? meaning : one.through) || unused) && !(sealed && loading)) {
          change(library, slot, forth_ ? one.through : meaning, sealed, open);
        }
        break;
      }
    });
    if (open) static_cast<void>(protect(library, PROT_READ));
  }

  // A slot that has not been used yet leads back into its own library, which then asks the loader.
  // That is certain to say what we were told only of libraries that the program began with: others
  // may have been loaded so that what they need comes first (RTLD_DEEPBIND), and then half of an
  // allocator would be exchanged. Rare enough to look for others of that name each time.
  [[nodiscard, gnu::cold]] static bool is_ambiguous(const Redirection& one) noexcept {
    const void* meaning = one.meaning.load(std::memory_order_relaxed);
    bool found = false;
    auto look = [&](const LoadedLibrary& library) {
      found = found ||
              (!library.contains(meaning) && !library.is_loader() && library.may_define(one.name));
    };
    for_each_library(look);
    return found;
  }

  // The loader makes all of these pages read-only at once.
  [[nodiscard]] bool is_being_loaded(const LoadedLibrary& library) noexcept {
    const std::uintptr_t begin = library.sealed_begin(), end = library.sealed_end();
    return !before_ours_ && begin != end && !read_only_.touch(begin, end);
  }

  void change(const LoadedLibrary& library, const void** slot, const void* to, bool sealed,
              bool& open) noexcept {
    if (sealed && !open) {
      open = protect(library, PROT_READ | PROT_WRITE);
      if (!open) {
        ++done_.refused;
        return;
      }
    }
    std::atomic_ref(*slot).store(to, std::memory_order_relaxed);
    ++done_.slots;
  }

  [[nodiscard]] static bool protect(const LoadedLibrary& library, int protection) noexcept {
    const std::uintptr_t begin = library.sealed_begin();
    return mprotect(reinterpret_cast<void*>(begin), library.sealed_end() - begin, protection) == 0;
  }

  std::span<const Redirection> redirections_;
  const std::atomic<bool>* const wanted_;
  const bool forth_;
  Settled& settled_;
  std::size_t place_ = 0;
  bool before_ours_ = true;  // in the order in which they were loaded
  bool late_ = false;        // those after the loader itself: not those that the program began with
  ReadOnlyPages read_only_;
  Redirected done_{};
};

Redirected walk(std::span<const Redirection> redirections, const std::atomic<bool>* wanted,
                Settled& settled) noexcept {
  Walk walk(redirections, wanted, settled);
  for_each_library(walk);
  return walk.done();
}

}  // namespace

bool find_meanings(std::span<Redirection> redirections) noexcept {
  if (!kSlotsAreKnown) return false;
  auto visit = [&](const LoadedLibrary& library) {
    if (!is_ours(library)) return;
    library.for_each_slot([&](const void** slot, const char* name, bool) {
      for (Redirection& one : redirections) {
        const bool known = std::strcmp(one.name, name) == 0 && !library.contains(*slot);
        if (known) one.meaning.store(*slot, std::memory_order_relaxed);
      }
    });
  };
  for_each_library(visit);
  return true;
}

Redirected redirect(std::span<const Redirection> redirections, const std::atomic<bool>& wanted,
                    Settled& settled) noexcept {
  return walk(redirections, &wanted, settled);
}

Redirected restore(std::span<const Redirection> redirections, Settled& settled) noexcept {
  return walk(redirections, nullptr, settled);
}

}  // namespace whence::base
