// json.h: stacks as JSON text, without a Python object for each frame.
//
// Threads: any. Allocates: the std::string it appends to. Fails by: std::bad_alloc.
#pragma once

#include <string>

#include "stacks/resolve.h"

namespace whence::stacks {

// One frame as an object with name, filename, line, column, end_line, end_column and kind; unknown
// numbers are null.
void append_json_frame(std::string& out, std::string_view name, std::string_view filename,
                       base::Location place, std::string_view kind);

// "<libfoo.so+0x1f2e3>": what a native frame is called before anybody has looked for its name.
[[nodiscard]] std::string place_name(const ResolvedFrame& frame);

// One stack as an array of its frames, innermost first.
void append_json_stack(std::string& out, StackId stack);

}  // namespace whence::stacks
