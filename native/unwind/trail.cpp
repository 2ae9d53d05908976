// trail.cpp: see trail.h.
#include "unwind/trail.h"

#include <algorithm>
#include <cstring>

#include "base/libraries_generation.h"
#include "base/pages.h"
#include "unwind/landmark.h"

namespace whence::unwind {
namespace {

constexpr std::size_t kFirstRoom = 128;
constexpr std::uint64_t kCountedAtOnce = 1000;  // frames

// Words that stand for those of a frame that nobody calls, and of one that must be left anew.
const Address kSame = 0;
constexpr Address kChanged = 1;

// Only words of the thread's own stack can be looked at again. A frame whose end lies in memory has
// a further one, and the others may say the same with another end.
void remember_words(Trail::Link& link, const Rule& rule, const detail::Left& left,
                    const detail::Steps& steps, bool goes_on) noexcept {
  const auto word = [](Address place) { return reinterpret_cast<const Address*>(place); };
  link.link_at = link.fp_at = &kSame;
  link.link = link.fp = kSame;
  const bool has_none = left.link_at == 0 || steps.at.pc != 0;
  if (!goes_on && has_none) return;  // or a return address that is 0
  const bool has_link = left.link_at != 0 && steps.on_stack(left.link_at);
  const bool has_fp = left.fp_at == 0 || steps.on_stack(left.fp_at);
  if (!has_link || !has_fp || rule.indirect) {
    link.link = kChanged;
    return;
  }
  link.link_at = word(left.link_at);
  link.link = detail::load(left.link_at);
  if (left.fp_at == 0) return;
  link.fp_at = word(left.fp_at);
  link.fp = steps.at.fp;
}

// Beyond code that nobody can leave. The word that leads there is looked at the next time. Code
// that was made at run time was called by whoever is there; functions of libraries may have been
// called by others.
[[gnu::cold, gnu::noinline]] bool land(detail::Steps& steps, Address landmark,
                                       std::uint64_t generation, detail::Left& left,
                                       bool& gap) noexcept {
  Landing landing;
  gap = find_library(steps.pc()).has_value();
  const StackRange stack = stack_range(steps.at.sp);
  if (landmark == 0 || !land_at(landmark, steps.at, stack, generation, landing)) return false;
  left.link_at = landing.word;
  left.end = landing.at.sp;
  steps.go_on_from(landing.at, false);
  return true;
}

// A link register says something only where nothing was called.
[[nodiscard]] bool is_at(const Trail::Link& link, const detail::Steps& steps) noexcept {
  return link.sp == steps.at.sp && link.at.pc == steps.at.pc && link.at.fp == steps.at.fp &&
         link.exact == steps.exact && (!steps.exact || link.at.link == steps.at.link);
}

}  // namespace

// From link `from` outwards to `to`: how many of the outermost links are left when the first is met
// whose words have changed. 0: none have.
inline std::size_t Trail::unchanged(std::size_t from, std::size_t to) const noexcept {
  for (std::size_t i = from + 1; i-- > to;) {
    const Link& link = links_[i];
    const Address back = detail::load(reinterpret_cast<Address>(link.link_at));
    const Address fp = detail::load(reinterpret_cast<Address>(link.fp_at));
    if (((back ^ link.link) | (fp ^ link.fp)) != 0) return i + 1;
  }
  return 0;
}

// The same down to the outermost, until one is met that does not lead on.
inline std::size_t Trail::verified(std::size_t from) const noexcept {
  for (;;) {
    std::size_t left = unchanged(from, trusted_inner_ + 1);
    if (left == 0) left = unchanged(std::min(from, trusted_outer_), 0);
    if (left == 0 || !leads_on(left - 1)) [[likely]]
      return left;
    from = left - 2;
  }
}

// Does a link that has no words lead to the next one, as it did?
[[gnu::cold, gnu::noinline]] bool Trail::leads_on(std::size_t at) const noexcept {
  const Link& link = links_[at];
  if (at == 0 || link.link_at != &kSame || link.gap) return false;
  detail::Steps steps(link.at, link.exact);
  detail::Left left;
  End end = End::cut;
  const Known known = detail::rule_of(steps, generation_);
  return steps.leave(Rule::unpack(known.rule), left, end) && left.end == link.end &&
         is_at(links_[at - 1], steps);
}

// A walk that came to its end for want of something may go further now; of a landmark, say.
bool Trail::ends_as_before(detail::Steps steps, std::size_t size) const noexcept {
  if (end_ == End::outermost) return true;
  if (goes_on_) return size >= kFewest;
  if (end_ == End::unknown) return false;
  steps.go_on_from(links_[0].at, links_[0].exact);
  detail::Left left;
  End end = End::cut;
  const Known known = detail::rule_of(steps, generation_);
  return !steps.leave(Rule::unpack(known.rule), left, end) && end == end_ &&
         left.end == links_[0].end;
}

// Links down to `left`, as if they had been walked.
bool Trail::take_known(std::size_t known, std::size_t left, std::size_t& fresh) noexcept {
  if (fresh + known > room_ && !make_room(fresh + known)) return false;
  for (; known > left; --known) links_[room_ + fresh++] = links_[known - 1];
  return true;
}

bool Trail::follow(const Registers& at, bool exact, CallLandmark call, void* given) noexcept {
  const std::uint64_t generation = base::libraries_generation();
  if (generation != generation_) size_ = 0;
  generation_ = generation;
  kept_ = 0;
  if (room_ == 0 && !make_room(kFirstRoom)) return false;
  detail::Steps steps(at, exact);
  std::size_t fresh = 0;      // links of this walk, behind the others
  std::size_t known = size_;  // links further out than the walk has come
  for (;;) {
    while (known != 0 && links_[known - 1].sp < steps.at.sp) --known;
    if (known != 0 && is_at(links_[known - 1], steps)) {
      std::size_t left = verified(known - 1);
      if (left == 0 && known + fresh <= kDeepest && ends_as_before(steps, known + fresh)) break;
      // Up to there it is as it was; the walk goes on from there.
      left = std::max<std::size_t>(left, 1);
      const bool too_many = known - left + fresh >= kDeepest;
      if (too_many) left = known - std::min(known, std::max(kHalf, fresh) - fresh);
      if (!take_known(known, left, fresh)) return false;
      if (too_many) {
        end_ = End::cut;
        goes_on_ = true;
        known = 0;
        break;
      }
      const Link& last = links_[left - 1];
      steps.go_on_from(last.at, last.exact);
      known = left - 1;
    }
    if (fresh == room_ && !make_room(fresh + 1)) return false;
    Link& link = links_[room_ + fresh++];
    const Known found = detail::rule_of(steps, generation);
    const Rule rule = Rule::unpack(found.rule);
    link.pc = steps.pc();
    link.sp = steps.at.sp;
    link.at = steps.at;
    link.exact = steps.exact;
    link.name = found.name;
    link.note = 0;
    link.gap = false;
    detail::Left left;
    End end = End::cut;
    bool goes_on = steps.leave(rule, left, end);
    link.end = left.end;
    if (!goes_on && end == End::unknown) [[unlikely]] {
      goes_on = land(steps, call(given, link.sp), generation, left, link.gap);
      has_gap_ = has_gap_ || link.gap;
    }
    remember_words(link, rule, left, steps, goes_on);
    if (!goes_on || fresh == kDeepest) {
      end_ = end;
      goes_on_ = goes_on;
      known = 0;
      break;
    }
  }
  trust(0, 0);
  if (known + fresh > room_ && !make_room(known + fresh)) return false;
  std::reverse_copy(links_ + room_, links_ + room_ + fresh, links_ + known);
  walked_ += known + fresh;
  if (walked_ >= kCountedAtOnce) count_hits();
  kept_ = known;
  size_ = known + fresh;
  if (has_gap_) [[unlikely]]
    has_gap_ = std::any_of(links_, links_ + size_, [](const Link& link) { return link.gap; });
  if (end_ != End::outermost || has_gap_) {
    statistics().truncated.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

// Threads that count together wait for one another.
void Trail::count_hits() noexcept {
  statistics().hits.fetch_add(walked_, std::memory_order_relaxed);
  walked_ = 0;
}

bool Trail::make_room(std::size_t links) noexcept {
  const std::size_t room = std::max(links, room_ * 2);
  auto* larger = static_cast<Link*>(base::map_pages(2 * room * sizeof(Link)));
  if (larger == nullptr) {
    size_ = kept_ = 0;
    trust(0, 0);
    return false;
  }
  if (room_ != 0) {
    std::memcpy(larger, links_, room_ * sizeof(Link));
    std::memcpy(larger + room, links_ + room_, room_ * sizeof(Link));
    base::unmap_pages(links_, 2 * room_ * sizeof(Link));
  }
  links_ = larger;
  room_ = room;
  return true;
}

void Trail::set_name(std::size_t i, FrameName name) noexcept {
  links_[i].name = name;
  const Known known = detail::rules.find(links_[i].pc, generation_);
  if (known.rule != 0) detail::rules.keep(links_[i].pc, generation_, {known.rule, name});
}

void Trail::release() noexcept {
  count_hits();
  if (room_ != 0) base::unmap_pages(links_, 2 * room_ * sizeof(Link));
  *this = {};
}

}  // namespace whence::unwind
