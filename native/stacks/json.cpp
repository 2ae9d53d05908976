// json.cpp: see json.h.
#include "stacks/json.h"

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

void append_json_stack(std::string& out, StackId stack) {
  out += '[';
  bool first = true;
  for_each_frame(stack, [&](StackId id) {
    if (!first) out += ", ";
    first = false;
    const ResolvedFrame frame = resolve(id);
    append_json_frame(out, frame.name, frame.filename, frame.place, name_of(frame.kind));
  });
  out += ']';
}

}  // namespace whence::stacks
