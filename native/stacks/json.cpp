// json.cpp: see json.h.
#include "stacks/json.h"

#include <cstdio>

#include "base/text.h"

namespace whence::stacks {
namespace {

void append_number(std::string& out, std::string_view key, std::int32_t value) {
  out += ", \"";
  out += key;
  out += "\": ";
  out += value == base::Location::kUnknown ? "null" : std::to_string(value);
}

}  // namespace

void append_json_frame(std::string& out, std::string_view name, std::string_view filename,
                       base::Location place, std::string_view kind) {
  out += "{\"name\": ";
  base::append_json_string(out, name);
  out += ", \"filename\": ";
  base::append_json_string(out, filename);
  append_number(out, "line", place.line);
  append_number(out, "column", place.column);
  append_number(out, "end_line", place.end_line);
  append_number(out, "end_column", place.end_column);
  out += ", \"kind\": ";
  base::append_json_string(out, kind);
  out += '}';
}

std::string place_name(const ResolvedFrame& frame) {
  const std::size_t slash = frame.filename.rfind('/');
  const auto file = frame.filename.substr(slash == std::string_view::npos ? 0 : slash + 1);
  char address[16];
  std::snprintf(address, sizeof address, "+0x%x>", frame.address);
  std::string name(1, '<');
  name += file;
  return name += address;
}

void append_json_stack(std::string& out, StackId stack) {
  out += '[';
  bool first = true;
  for_each_frame(stack, [&](StackId id) {
    if (!first) out += ", ";
    first = false;
    const ResolvedFrame frame = resolve(id);
    const bool native = frame.kind == FrameKind::native;
    append_json_frame(out, native ? place_name(frame) : std::string(frame.name), frame.filename,
                      frame.place, name_of(frame.kind));
  });
  out += ']';
}

}  // namespace whence::stacks
