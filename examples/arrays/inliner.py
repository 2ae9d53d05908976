"""From the tree to a graph: functions are inlined, and operations get their handles.

This is the one place that knows both an operation and the calls that lead to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from whence.handles import InlinedCall, Recorder, SourceRange

from .graph import Constant, Graph, Input, Node, Operation
from .syntax import Binary, Call, Expression, Module, Name, Number


class _Site(NamedTuple):
    """A call: who is called, and where."""

    function: str
    range: SourceRange


_Path: TypeAlias = tuple[_Site, ...]  # outermost first


def inline(module: Module, recorder: Recorder) -> Graph:
    """Return the graph of a module. SyntaxError if names or calls are wrong."""
    inliner = _Inliner(module, recorder)
    names: dict[str, Node] = {name: Input(name) for name in module.inputs}
    for name, value in module.lets.items():
        names[name] = inliner.lower(value, names, ())
    result = inliner.lower(module.result, names, ())
    return Graph(module.inputs, tuple(inliner.operations), result)


class _Inliner:
    def __init__(self, module: Module, recorder: Recorder) -> None:
        self.operations: list[Operation] = []
        self._module = module
        self._recorder = recorder
        self._stacks: dict[_Path, InlinedCall] = {}

    def lower(self, tree: Expression, names: Mapping[str, Node], path: _Path) -> Node:
        match tree:
            case Number(value):
                return Constant(value)
            case Name(name, at):
                if name not in names:
                    message = f"{name!r} is not known here"
                    raise self._error(message, at)
                return names[name]
            case Binary(op, left, right, at):
                operands = (
                    self.lower(left, names, path),
                    self.lower(right, names, path),
                )
                is_array = any(operand.is_array for operand in operands)
                return self._operation(op, operands, at, path, is_array=is_array)
            case Call():
                return self._call(tree, names, path)

    def _call(self, call: Call, names: Mapping[str, Node], path: _Path) -> Node:
        # In the caller's names and path: an argument belongs to who wrote it.
        arguments = tuple(self.lower(tree, names, path) for tree in call.arguments)
        if call.function == "sum":
            self._check_count(call, 1)
            return self._operation("sum", arguments, call.range, path, is_array=False)
        function = self._module.functions.get(call.function)
        if function is None:
            message = f"there is no function {call.function!r}"
            raise self._error(message, call.range)
        self._check_count(call, len(function.parameters))
        if any(site.function == call.function for site in path):
            message = f"{call.function!r} calls itself, which would never end"
            raise self._error(message, call.range)
        parameters = dict(zip(function.parameters, arguments, strict=True))
        inside = (*path, _Site(call.function, call.range))
        return self.lower(function.body, parameters, inside)

    def _operation(
        self,
        op: str,
        operands: tuple[Node, ...],
        at: SourceRange,
        path: _Path,
        *,
        is_array: bool,
    ) -> Operation:
        handle = self._recorder.issue(at, op, self._stack(path))
        operation = Operation(op, operands, handle, is_array)
        self.operations.append(operation)
        return operation

    def _stack(self, path: _Path) -> InlinedCall | None:
        """Return the calls of a path; paths that end alike share that end."""
        if not path:
            return None
        if path not in self._stacks:
            first, *rest = path
            inside = self._stack(tuple(rest))
            call = InlinedCall(first.function, first.range, callee=inside)
            self._stacks[path] = call
        return self._stacks[path]

    def _check_count(self, call: Call, wanted: int) -> None:
        if len(call.arguments) != wanted:
            given = len(call.arguments)
            message = f"{call.function!r} takes {wanted} values, not {given}"
            raise self._error(message, call.range)

    def _error(self, message: str, at: SourceRange) -> SyntaxError:
        return self._module.source.error(message, at)
