// trail.h: the native frames that a thread had last, to compare the next ones with.
//
// Threads: one trail for each thread, entered by that thread alone; not inside a signal handler.
// Allocates: by mmap, for a deeper stack than any before. Fails by: false, with no frames.
//
// Most of a stack is the same from one capture to the next. Frames that wait for a call are where
// they were as long as the words by which they were left are: the return address, and the frame
// pointer of their caller. So all links are kept, outermost first:
//
//     [0] outermost   [1] ...   [n-1] innermost      each with the registers in it, and its words
//
// A walk goes from frame to frame until it finds itself in a frame of the trail with the same
// registers. From there outwards it only looks whether the words have changed: each that has not
// leads to the registers of the next link, so it is never a guess. That is two loads a frame that
// depend on nothing, where a walk waits for each before it knows where the next one is. Frames
// whose words lie elsewhere, or are more, are left anew: that must lead to the next link, too.
//
// Of a stack with more frames than there may be, the innermost ones are kept. If each frame more
// put the outermost of them out, all would be new each time to whoever knows something of them. So
// once there are too many, half of them go at once, and the end stays where it is until there are
// too many again, or too few:
//
//     [--------- kDeepest ---------]   one more:  [-- kHalf --]      too few:  less than kFewest
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "unwind/walk.h"

namespace whence::unwind {

class Trail {
 public:
  struct Link {
    // Verified first: where words lie, and what they were.
    const Address* link_at;
    Address link;
    const Address* fp_at;
    Address fp;
    // The frame, and the registers in it.
    Address pc, sp, end;
    Registers at;
    bool exact;
    bool gap;  // further out than this frame, some may be missing
    FrameName name;
    std::uint64_t note;  // whatever its owner knows of the frames up to this one

    [[nodiscard]] bool has(Address place) const noexcept { return place - sp < end - sp; }
  };

  static constexpr std::size_t kHalf = kDeepest / 2, kFewest = kDeepest / 4;

  // The frames from `at` on. `exact`: the pc is an instruction's own, not one to return to.
  // landmark(sp) is an address in some frame further out than that, or 0: if the walk comes to code
  // that cannot be left, it goes on there (landmark.h).
  template <class Landmark>
  [[nodiscard]] bool follow(const Registers& at, bool exact, Landmark&& landmark) noexcept {
    const auto call = [](void* given, Address sp) noexcept {
      return (*static_cast<std::remove_reference_t<Landmark>*>(given))(sp);
    };
    return follow(at, exact, call, &landmark);
  }
  [[nodiscard]] bool follow(const Registers& at, bool exact = true) noexcept {
    return follow(at, exact, [](Address) noexcept { return Address{0}; });
  }

  // For the next follow(): whoever knows better says that links from `inner` on lead to `outer`, as
  // they did the last time, so they are not looked at.
  void trust(std::size_t outer, std::size_t inner) noexcept {
    trusted_outer_ = outer;
    trusted_inner_ = inner;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Outermost first.
  [[nodiscard]] Link& operator[](std::size_t i) noexcept { return links_[i]; }
  // So many of them, from the outermost on, are those of the last time.
  [[nodiscard]] std::size_t kept() const noexcept { return kept_; }
  // How the walk ended, at the outermost.
  [[nodiscard]] End end() const noexcept { return end_; }
  // Names a frame that had no name, for everybody who meets it.
  void set_name(std::size_t i, FrameName name) noexcept;
  // Adds to the statistics what this thread has not added yet; it does so now and then.
  void count_hits() noexcept;
  // Nothing is known any more.
  void forget() noexcept { size_ = kept_ = 0; }
  // When the thread ends.
  void release() noexcept;

 private:
  using CallLandmark = Address (*)(void* given, Address sp) noexcept;

  [[nodiscard]] bool follow(const Registers& at, bool exact, CallLandmark call,
                            void* given) noexcept;
  [[nodiscard]] std::size_t verified(std::size_t from) const noexcept;
  [[nodiscard]] std::size_t unchanged(std::size_t from, std::size_t to) const noexcept;
  [[nodiscard]] bool leads_on(std::size_t at) const noexcept;
  [[nodiscard]] bool ends_as_before(detail::Steps steps, std::size_t size) const noexcept;
  [[nodiscard]] bool take_known(std::size_t known, std::size_t left, std::size_t& fresh) noexcept;
  [[nodiscard]] bool make_room(std::size_t links) noexcept;

  Link* links_ = nullptr;  // room_ of them, and room_ more for those of a walk, innermost first
  std::size_t size_ = 0, kept_ = 0, room_ = 0;
  std::size_t trusted_outer_ = 0, trusted_inner_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t walked_ = 0;  // frames that are not counted yet
  End end_ = End::cut;
  bool has_gap_ = false;  // some link may have
  bool goes_on_ = false;  // further out there are frames, but too many
};

}  // namespace whence::unwind
