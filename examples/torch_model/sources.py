"""What torch.fx knows of a node's source, as whence.handles wants it.

A node has the stack that made it, as text, and the modules that were being called:

    scorer.py, in forward                     calls first, a Layer
    torch/nn/modules/module.py                (which is how modules are called)
    scorer.py, in forward                     calls linear, a Linear
    torch/...

Whatever is not PyTorch's own is a place in the model. The last place is the node's, and
the others are the calls that led there. A call goes to a module if how modules are
called comes next.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from whence.handles import InlinedCall, SourceRange

if TYPE_CHECKING:
    from torch import fx

_PLACE = re.compile(r'File "(.+)", line (\d+), in (.+)')
_PYTORCH = Path(torch.__file__).parent
_CALLS_A_MODULE = str(_PYTORCH / "nn/modules/module.py")
# Of PyTorch itself, only modules that contain others are between those of a model.
_CONTAINERS = str(_PYTORCH / "nn/modules/container.py")


def describe(node: fx.Node) -> tuple[SourceRange | None, str, InlinedCall | None]:
    """Return where a node is, what it is called, and the calls that led there."""
    found = _PLACE.findall(node.stack_trace or "")
    modules = iter(node.meta.get("nn_module_stack", {}).values())
    places = []  # in the model: file, line, function, and the module that is called
    for (file, line, function), following in zip_longest(found, found[1:]):
        if file.startswith(f"{_PYTORCH}/") and file != _CONTAINERS:
            continue
        to_module = following is not None and following[0] == _CALLS_A_MODULE
        called = next(modules, None) if to_module else None
        places.append((SourceRange(file, int(line)), function, called))
    if not places:
        return None, node.name, None
    stack = None
    inner = places[-1][1]  # the function that the call further in is made by
    for place, function, called in reversed(places[:-1]):
        path, module = called or (None, None)
        instance = path.rpartition(".")[2] if path else None
        type_name = full_name(module) if module else None
        stack = InlinedCall(inner, place, type_name, instance, stack)
        inner = function
    return places[-1][0], node.name, stack


def full_name(module: type[Any]) -> str:
    """Return the name of a class of modules, with the Python module it is in."""
    return f"{module.__module__}.{module.__qualname__}"
