"""From a model to a flat program whose instructions carry handles, through torch.fx.

    bent = torch.relu(mixed)         relu  handle 3  -+
    return bent * self.scale         mul   handle 5  -+->  relu_mul  handle 13, fused

Passes are free to do what they like with operations, as long as they hand on the
handles: that of an operation which stays, or one derived from those it replaces.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from program import Instruction, Program, Register
from sources import describe, full_name
from whence import handles
from whence.handles import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable


class LineTracer(fx.Tracer):
    """Traces as ``torch.fx.symbolic_trace`` does, and keeps the lines."""

    record_stack_traces = True


def lower(model: torch.nn.Module) -> Program:
    """Trace a model and lower it; its handles are installed while it is kept."""
    graph = LineTracer().trace(model)
    recorder = Recorder(top=full_name(type(model)))
    issued = dict(
        recorder.issue_all(graph.nodes, children=lambda _: (), describe=describe)
    )
    registers: dict[fx.Node, Register] = {}
    instructions: list[Instruction] = []
    for node in graph.nodes:
        if _fused_into(node) is not None or node.op == "output":
            continue
        if node.op != "placeholder":
            step = _instruction(node, model, recorder, issued)
            args = fx.node.map_arg(step.args, registers.__getitem__)
            kwargs = fx.node.map_arg(step.kwargs, registers.__getitem__)
            instructions.append(replace(step, args=args, kwargs=kwargs))
        registers[node] = Register(len(registers))
    result = registers[next(iter(reversed(graph.nodes))).args[0]]
    return Program(instructions, result, handles.install(recorder.stop()))


def _instruction(
    node: fx.Node,
    model: torch.nn.Module,
    recorder: Recorder,
    issued: dict[fx.Node, int],
) -> Instruction:
    """Make the instruction of a node, whose operands are nodes still."""
    fused = [other for other in node.all_input_nodes if _fused_into(other) is node]
    if not fused:
        code = _code_of(node, model)
        return Instruction(issued[node], node.name, code, node.args, node.kwargs)
    (relu,) = fused
    handle = recorder.derive("fused", [issued[relu], issued[node]], op="relu_mul")
    args = (*relu.args, *node.args[1:])
    return Instruction(handle, "relu_mul", _relu_mul, args, {})


def _fused_into(node: fx.Node) -> fx.Node | None:
    """Return the multiplication that a relu is computed together with, if any."""
    if node.target is not torch.relu or len(node.users) != 1:
        return None
    (user,) = node.users
    is_first = user.target is operator.mul and user.args[0] is node
    return user if is_first and user.args[1] is not node else None


def _relu_mul(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    return torch.relu(x).mul_(factor)


def _code_of(node: fx.Node, model: torch.nn.Module) -> Callable[..., Any]:
    """Return what computes a node, as a function of its arguments."""
    code: Callable[..., Any]
    match node.op:
        case "call_module":
            code = model.get_submodule(node.target)
        case "get_attr":
            value = operator.attrgetter(node.target)(model)
            code = lambda: value  # noqa: E731
        case "call_method":
            code = getattr(torch.Tensor, node.target)
        case _:
            code = node.target
    return code
