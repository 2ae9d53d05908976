// test_walk.cpp: frames are left by their rules, and nothing is touched that is not there.
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "awkward_rows.h"
#include "base/libraries_generation.h"
#include "base/stack_segment.h"
#include "check.h"
#include "unwind/trail.h"
#include "unwind/walk.h"

using namespace whence;
using namespace whence::unwind;

namespace {

struct Seen {
  std::vector<Frame> frames;
  End end;
};

[[nodiscard]] Seen walked(const Registers& at) {
  Seen seen;
  if (!prepare()) return seen;
  seen.end = walk(at, whence::base::libraries_generation(), [&](const Frame& frame) {
    seen.frames.push_back(frame);
    return true;
  });
  return seen;
}

// The trail, and a walk from the same place: frame for frame. Of very many it may have fewer.
[[nodiscard]] bool agrees(Trail& trail, const Registers& at) {
  const Seen seen = walked(at);
  if (!trail.follow(at)) return false;
  const bool whole = trail.size() == seen.frames.size() && trail.end() == seen.end;
  const bool part = trail.end() == End::cut && trail.size() >= Trail::kFewest &&
                    trail.size() <= seen.frames.size();
  if (!whole && !part) return false;
  for (std::size_t i = 0; i < trail.size(); ++i) {
    const Trail::Link& link = trail[trail.size() - 1 - i];
    const Frame& frame = seen.frames[i];
    if (link.pc != frame.pc || link.sp != frame.sp || link.end != frame.end) return false;
  }
  return true;
}

[[nodiscard]] Address address(const void* place) {
  return reinterpret_cast<Address>(place);
}

// Two pages; one that is not there before them, and one behind.
class Pages {
 public:
  Pages() : size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    all_ = static_cast<char*>(mmap(nullptr, 4 * size_, PROT_NONE, kFlags, -1, 0));
    CHECK(mprotect(begin(), 2 * size_, PROT_READ | PROT_WRITE) == 0);
  }
  ~Pages() { munmap(all_, 4 * size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] char* begin() const { return all_ + size_; }
  [[nodiscard]] char* end() const { return begin() + 2 * size_; }
  [[nodiscard]] char* guard() const { return all_; }

 private:
  std::size_t size_;
  char* all_;
};

}  // namespace

TEST(frames_are_left_by_their_rules) {
  Address words[16] = {};
  words[1] = row::by_fp();  // of the first, which ends at words + 2
  words[6] = 77;            // the frame pointer's, and then
  words[7] = row::last();
  const Seen seen = walked({row::near(), address(words), address(words + 6), 0});
  CHECK(seen.end == End::outermost && seen.frames.size() == 3);
  CHECK(seen.frames[0].pc == row::near() && seen.frames[0].end == address(words + 2));
  CHECK(seen.frames[1].pc == row::by_fp() - 1 && seen.frames[1].sp == address(words + 2));
  CHECK(seen.frames[1].end == address(words + 8));
  CHECK(seen.frames[2].pc == row::last() - 1 && seen.frames[2].sp == address(words + 8));
}

TEST(a_frame_that_ends_no_further_out_leads_nowhere) {
  Address words[16] = {};
  words[1] = row::by_fp();
  words[0] = address(words);
  const Registers at = {row::by_fp(), address(words), address(words), 0};
  const Seen seen = walked(at);
  CHECK(seen.end == End::cut && seen.frames.size() == 2);
}

TEST(a_stack_of_its_own_is_read_no_further_than_it_goes) {
  const Pages pages;
  auto* last = reinterpret_cast<Address*>(pages.end()) - 4;
  last[1] = row::far();
  Trail trail;
  const Registers at = {row::near(), address(last), 0, 0};
  const Seen seen = walked(at);
  CHECK(seen.end == End::cut && seen.frames.size() == 2);
  CHECK(agrees(trail, at));
  last[1] = row::by_fp();
  for (const Address fp : {Address{0}, Address{1}, address(pages.end() - 8), address(pages.end()),
                           ~Address{0}, ~Address{7}}) {
    const Seen other = walked({row::near(), address(last), fp, 0});
    CHECK(other.end == End::cut && other.frames.size() == 2);
    CHECK(agrees(trail, {row::near(), address(last), fp, 0}));
  }
  trail.release();
}

TEST(words_of_a_stack_that_has_gone_are_not_looked_at) {
  Trail trail;
  Address words[8] = {};
  {
    const Pages pages;
    auto* last = reinterpret_cast<Address*>(pages.end()) - 8;
    last[1] = row::by_fp();
    last[2] = 0;
    last[3] = row::last();
    words[1] = row::by_fp();
    words[4] = address(last + 2);
    words[5] = row::near();  // on the other stack
    CHECK(agrees(trail, {row::near(), address(last), address(last + 2), 0}));
    CHECK(trail.size() == 3 && trail.end() == End::outermost);
  }
  CHECK(agrees(trail, {row::near(), address(words), 0, 0}));
  trail.release();
}

TEST(a_frame_whose_end_lies_in_memory_is_left_anew) {
  Trail trail;
  Address words[16] = {};
  words[3] = address(words + 8);
  words[7] = words[9] = row::last();
  const Registers at = {row::aligned(), address(words), address(words + 4), 0};
  CHECK(agrees(trail, at));
  CHECK(trail[1].end == address(words + 8) && trail.kept() == 0);
  CHECK(agrees(trail, at));
  CHECK(trail.kept() == 2);
  words[3] = address(words + 10);  // the same words are where they were
  CHECK(agrees(trail, at));
  CHECK(trail[1].end == address(words + 10));
  trail.release();
}

TEST(a_walk_that_ended_early_may_go_further_the_next_time) {
  Trail trail;
  const Pages pages;
  Address words[8] = {};
  words[1] = row::far();  // too far, if the stack ends before
  const base::OnSegment on(reinterpret_cast<char*>(words), reinterpret_cast<char*>(words + 8));
  CHECK(agrees(trail, {row::near(), address(words), 0, 0}));
  words[1] = row::last();
  CHECK(agrees(trail, {row::near(), address(words), 0, 0}));
  CHECK(trail.end() == End::outermost);
  // By a word that lies elsewhere: what the walk has kept is all the same.
  auto* other = reinterpret_cast<Address*>(pages.begin());
  words[1] = row::by_fp();
  const Registers at = {row::near(), address(words), address(other), 0};
  other[1] = 0;
  CHECK(agrees(trail, at));
  other[1] = row::last();
  CHECK(agrees(trail, at));
  CHECK(trail.size() == 3);
  trail.release();
}

TEST(a_frame_pointer_that_is_lost_is_not_used) {
  Address words[16] = {};
  words[1] = row::by_fp();
  words[6] = 0;
  words[7] = row::last();
  const Seen seen = walked({row::losing(), address(words), address(words + 6), 0});
  CHECK(seen.end == End::cut && seen.frames.size() == 2);
}

TEST(code_that_is_marked_as_a_signal_is_left_by_its_row) {
  Address words[64] = {};
  words[1] = row::near();
  words[3] = row::last();
  const Seen seen = walked({row::trampoline(), address(words), 0, 0});
  CHECK(seen.end == End::outermost && seen.frames.size() == 3);
}

TEST(a_signal_that_says_it_came_from_nowhere_is_no_fault) {
  const Pages pages;
  struct {
    Address words[48];
    ucontext_t context;
  } frame = {};
#if defined(__x86_64__)
  auto* saved = &frame.context;
  const Registers at = {row::signal(), address(saved), 0, 0};
  auto& pc = saved->uc_mcontext.gregs[REG_RIP];
  auto& sp = saved->uc_mcontext.gregs[REG_RSP];
#else
  auto* saved = &frame.context;
  const Registers at = {row::signal(), address(saved) - 128, 0, 0};
  auto& pc = saved->uc_mcontext.pc;
  auto& sp = saved->uc_mcontext.sp;
#endif
  const base::OnSegment on(pages.guard(), pages.end());  // as one of ours: its guard belongs to it
  using Saved = std::remove_reference_t<decltype(pc)>;
  for (const Address place : {address(pages.guard()), address(pages.guard() + 8), Address{0},
                              Address{64}, ~Address{15}}) {
    pc = static_cast<Saved>(row::near());
    sp = static_cast<Saved>(place);
    const Seen seen = walked(at);
    CHECK(seen.end == End::cut && seen.frames.size() == 2);
  }
  auto* there = reinterpret_cast<Address*>(pages.begin());
  there[1] = row::last();
  sp = static_cast<Saved>(address(there));
  const Seen seen = walked(at);
  CHECK(seen.end == End::outermost && seen.frames.size() == 3);
  // Round and round.
  pc = static_cast<Saved>(row::signal());
  sp = static_cast<Saved>(at.sp);
  CHECK(walked(at).frames.size() == kDeepest);
}

#if defined(__aarch64__)
TEST(a_leaf_returns_to_where_its_link_says_each_time) {
  Trail trail;
  Address words[8] = {};
  words[1] = words[3] = row::last();
  CHECK(agrees(trail, {row::leaf(), address(words), 0, row::near()}));
  CHECK(trail[1].pc == row::near() - 1);
  CHECK(agrees(trail, {row::leaf(), address(words), 0, row::near() + 4}));
  CHECK(trail[1].pc == row::near() + 3);
  constexpr Address kSigned = Address{0x5A} << 48;
  CHECK(agrees(trail, {row::leaf(), address(words), 0, row::near() | kSigned}));
  CHECK(trail.size() == 3 && trail[1].pc == row::near() - 1);
  trail.release();
}
#endif

namespace {

// So many frames of the same kind, then the outermost.
class Deep {
 public:
  explicit Deep(std::size_t frames) : words_(2 * frames + 2) {
    for (std::size_t i = 0; i < frames; ++i) words_[2 * i + 1] = row::near();
    words_[2 * frames - 1] = row::last();
  }
  [[nodiscard]] const char* begin() const { return reinterpret_cast<const char*>(words_.data()); }
  [[nodiscard]] const char* end() const {
    return reinterpret_cast<const char*>(words_.data() + words_.size());
  }
  // From the frame that has so many further in.
  [[nodiscard]] Registers at(std::size_t frame) const {
    return {row::near(), address(words_.data() + 2 * frame), 0, 0};
  }

 private:
  std::vector<Address> words_;
};

}  // namespace

TEST(the_innermost_of_very_many_frames_are_found) {
  const Deep deep(3 * kDeepest);
  const base::OnSegment on(deep.begin(), deep.end());
  Trail trail;
  // Deeper and deeper, a frame at a time and more; then out again.
  for (const std::size_t frame :
       {2 * kDeepest + 100, 2 * kDeepest + 1, 2 * kDeepest, 2 * kDeepest - 1, 2 * kDeepest - 2,
        kDeepest, kDeepest - 1, std::size_t{0}, std::size_t{1}, kDeepest, 2 * kDeepest - 1,
        2 * kDeepest, 2 * kDeepest + 1, 3 * kDeepest - 2}) {
    CHECK(agrees(trail, deep.at(frame)));
  }
  trail.release();
}

TEST(of_very_many_frames_those_that_are_kept_stay) {
  const Deep deep(4 * kDeepest);
  const base::OnSegment on(deep.begin(), deep.end());
  Trail trail;
  std::size_t anew = 0;
  for (std::size_t frame = 4 * kDeepest; frame-- != 0;) {
    CHECK(trail.follow(deep.at(frame)));
    CHECK(trail.size() <= kDeepest);
    anew += trail.kept() == 0;
  }
  CHECK(anew <= 8);
  for (std::size_t frame = 0; frame != 4 * kDeepest; ++frame) {
    CHECK(trail.follow(deep.at(frame)));
    anew += trail.kept() == 0;
  }
  CHECK(anew <= 16);
  trail.release();
}
