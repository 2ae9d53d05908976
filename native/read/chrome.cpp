// chrome.cpp: see chrome.h.
#include "read/chrome.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/text.h"

namespace whence::read {
namespace {

// A file that lies may have everything begin at one time.
constexpr std::size_t kMostWaiting = 1u << 19;

void append_number(std::string& out, std::int64_t number) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, static_cast<std::size_t>(end - digits));
}

// Microseconds, with nanoseconds behind the point.
void append_time(std::string& out, std::int64_t nanoseconds) {
  append_number(out, nanoseconds / 1000);
  const std::int64_t rest = nanoseconds % 1000;
  const char digits[] = {'.', static_cast<char>('0' + rest / 100),
                         static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)};
  out.append(digits, sizeof digits);
}

// Escapes of lone surrogates are valid JSON, but there are readers that refuse the whole file.
void append_text(std::string& out, std::string_view text) {
  std::string clean;
  base::append_utf8(clean, text);
  base::append_json_string(out, clean);
}

}  // namespace

void ChromeCalls::take(const CallStep& step) {
  const Call& call = step.call;
  if (call.thread != current_id_) {
    current_ = &threads_[call.thread];
    current_id_ = call.thread;
  }
  Thread& thread = *current_;
  const std::int64_t before = thread.now;
  thread.now = std::max(before, call.start);
  if (step.what == CallStep::What::entered) return thread.starts.push_back(call.start);
  thread.now = std::max(before, call.start + call.duration);
  if (step.what == CallStep::What::folded) {
    Call folded = call;
    folded.start = std::max(call.start, before);
    folded.duration = thread.now - folded.start;
    return end(folded);
  }
  if (!thread.starts.empty()) thread.starts.pop_back();
  end(call);
}

void ChromeCalls::end(const Call& call) {
  const std::vector<std::int64_t>& starts = current_->starts;
  if (!starts.empty() && starts.back() == call.start && current_->waiting.size() < kMostWaiting) {
    current_->waiting.push_back(call);
    return;
  }
  write(call);
  write_waiting(*current_, call.start);
}

// Those that began with the call just written, which was around them, in the order of beginning.
void ChromeCalls::write_waiting(Thread& thread, std::int64_t start) {
  std::vector<Call>& waiting = thread.waiting;
  auto first = waiting.end();
  while (first != waiting.begin() && std::prev(first)->start == start) --first;
  std::sort(first, waiting.end(), [](const Call& a, const Call& b) { return a.number < b.number; });
  for (auto call = first; call != waiting.end(); ++call) write(*call);
  waiting.erase(first, waiting.end());
}

void ChromeCalls::write(const Call& call) {
  const std::int64_t begin = std::max<std::int64_t>(start_ + call.start, 0);
  const std::int64_t end = std::max(start_ + call.start + call.duration, begin);
  out_ += "{\"ph\":\"X\",\"ts\":";
  append_time(out_, begin);
  out_ += ",\"dur\":";
  append_time(out_, end - begin);
  out_ += ",\"pid\":";
  append_number(out_, process_);
  out_ += ",\"tid\":";
  append_number(out_, call.thread);
  out_ += text_of(functions_.of(call));
}

const std::string& ChromeCalls::text_of(std::uint32_t function) {
  const bool known = function < functions_.all().size();
  const std::size_t place = known ? function + 1 : 0;
  if (texts_.size() <= place) texts_.resize(place + 1);
  std::string& text = texts_[place];
  if (!text.empty()) return text;
  const Function one = known ? functions_.all()[function] : Function{};
  const std::string* name = names_.string(one.name);
  const std::string* file = names_.string(one.filename);
  text = ",\"cat\":\"call\",\"name\":";
  append_text(text, name != nullptr ? *name : "<unknown>");
  if (file != nullptr) {
    text += ",\"args\":{\"file\":";
    append_text(text, *file);
    text += ",\"line\":";
    append_number(text, one.line.value_or(0));
    text += '}';
  }
  text += "},\n";
  return text;
}

}  // namespace whence::read
