// chrome.cpp: see chrome.h.
#include "read/chrome.h"

#include <charconv>

#include "base/text.h"

namespace whence::read {
namespace {

void append_number(std::string& out, std::int64_t number) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, static_cast<std::size_t>(end - digits));
}

// Microseconds, with nanoseconds behind the point.
void append_time(std::string& out, std::int64_t nanoseconds) {
  if (nanoseconds < 0) nanoseconds = 0;
  append_number(out, nanoseconds / 1000);
  const std::int64_t rest = nanoseconds % 1000;
  const char digits[] = {'.', static_cast<char>('0' + rest / 100),
                         static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)};
  out.append(digits, sizeof digits);
}

}  // namespace

void ChromeCalls::take(const CallStep& step) {
  const Call& call = step.call;
  if (step.what != CallStep::What::left) {
    append('B', call.start, call.thread);
    out_ += text_of(functions_.of(call));
  }
  if (step.what != CallStep::What::entered) {
    append('E', call.start + call.duration, call.thread);
    out_ += "},\n";
  }
}

void ChromeCalls::append(char phase, std::int64_t time, std::uint32_t thread) {
  out_ += "{\"ph\":\"";
  out_ += phase;
  out_ += "\",\"ts\":";
  append_time(out_, start_ + time);
  out_ += ",\"pid\":";
  append_number(out_, process_);
  out_ += ",\"tid\":";
  append_number(out_, thread);
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
  base::append_json_string(text, name != nullptr ? *name : "<unknown>");
  if (file != nullptr) {
    text += ",\"args\":{\"file\":";
    base::append_json_string(text, *file);
    text += ",\"line\":";
    append_number(text, one.line);
    text += '}';
  }
  text += "},\n";
  return text;
}

}  // namespace whence::read
