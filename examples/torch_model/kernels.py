"""From an error in code that Inductor generated to handles for the model's lines.

Asked to, Inductor writes a number of its own before each call of a kernel, and keeps
the stacks of all operations that the kernel was made of:

    # [Provenance debug handles] cpp_fused_mul_relu_1:3     <- a comment in the code
    cpp_fused_mul_relu_1(buf2, arg4_1)                      <- where the error is raised
    {"cpp_fused_mul_relu_1:3": [stack, stack]}              <- kept with the code

The comment tells more than the lines that ``whence.generated`` asks for: those name one
operation only, and for kernels in C++ perhaps the one that comes next.
"""

from __future__ import annotations

import json
import linecache
import re
import traceback
from typing import TYPE_CHECKING

from whence.handles import UNKNOWN, InlinedCall, SourceRange

if TYPE_CHECKING:
    from whence.handles import Recorder

# Of torch.compile. Its cache on disk gives the lines of when something was compiled
# first, even if the file of the model has changed since.
OPTIONS = {"trace.provenance_tracking_level": 1, "fx_graph_cache": False}
_KEPT = "inductor_provenance_stack_traces_str"
_NUMBERED = re.compile(r"# \[Provenance debug handles\] (\S+)")
_PLACE = re.compile(r'File "(.+)", line (\d+), in (.+)')


def issue(recorder: Recorder, error: BaseException) -> int:
    """Issue a handle for the kernel that an error came from; -1 if it is unknown."""
    stacks: dict[str, list[str]] = {}
    for frame, line in traceback.walk_tb(error.__traceback__):
        # Code is called by the object that keeps it.
        kept = getattr(frame.f_locals.get("self"), _KEPT, None)
        stacks = json.loads(kept) if kept else stacks
        before = linecache.getline(frame.f_code.co_filename, line - 1)
        if (kernel := _NUMBERED.search(before)) and kernel[1] in stacks:
            name = kernel[1].rpartition(":")[0]
            parts = [_operation(recorder, text, name) for text in stacks[kernel[1]]]
            is_one = len(parts) == 1
            return parts[0] if is_one else recorder.derive("fused", parts, op=name)
    return UNKNOWN


def _operation(recorder: Recorder, text: str, kernel: str) -> int:
    """Issue a handle for an operation, from the text of its stack, innermost last."""
    *calls, (file, line, inner) = _PLACE.findall(text)
    stack = None
    for site, site_line, function in reversed(calls):
        stack = InlinedCall(inner, SourceRange(site, int(site_line)), callee=stack)
        inner = function
    return recorder.issue(SourceRange(file, int(line)), kernel, stack)
