"""An environment of Jinja2 whose templates carry debug handles.

A template is parsed, lowered to Python and run; its nodes are gone by then. Here each
node gets a handle before it is lowered, and each call takes its own along: ``price(x)``
becomes ``call_by_handle(17, price, x)``. If that fails, the error has 17, and 17 stands
for the line of the template, whatever the engine did in between.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import nodes

from whence import handles
from whence.handles import LoweredError, Recorder, SourceRange

if TYPE_CHECKING:
    from collections.abc import Callable

    from whence.handles import HandleTable


class HandledEnvironment(jinja2.Environment):
    """Renders templates whose errors are ``LoweredError``, with handles."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # An installed table is known for as long as somebody keeps it: here, until its
        # template is compiled again.
        self.tables: dict[str, HandleTable] = {}

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,  # noqa: FBT001, FBT002
    ) -> str:
        """Give handles to the nodes, then make Python of them as ever.

        Jinja2 documents this method as one to override.
        """
        table = _issue(source, filename or name or "<template>")
        key = filename or f"<template {len(self.tables)}>"  # strings have no name
        self.tables[key] = handles.install(table)
        python: str = super()._generate(source, name, filename, defer_init)
        return python

    @staticmethod
    @jinja2.pass_context
    def call_by_handle(
        context: jinja2.runtime.Context,
        handle: int,
        function: Callable[..., Any],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Call a function for the node that has this handle."""
        try:
            return context.call(function, *args, **kwargs)
        except LoweredError as error:  # from a macro or block further in
            error.push(handle)
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            raise LoweredError(message, handle) from error


def _issue(template: nodes.Template, filename: str) -> HandleTable:
    """Issue a handle for each node; calls are changed to take theirs along."""
    recorder = Recorder(top=PurePath(filename).stem)
    issued = recorder.issue_all(
        [template],
        children=lambda node: node.iter_child_nodes(),
        describe=lambda node: (_range(node, filename), _kind(node)),
    )
    for node, handle in issued:  # all have been visited: changes are safe now
        if isinstance(node, nodes.Call):
            number = nodes.Const(handle, lineno=node.lineno)
            node.args = [number, node.node, *node.args]
            by_handle = nodes.EnvironmentAttribute("call_by_handle", lineno=node.lineno)
            by_handle.set_environment(node.environment)
            node.node = by_handle
    return recorder.stop()


def _range(node: nodes.Node, filename: str) -> SourceRange | None:
    """Return where a node is. What the parser made up is nowhere."""
    return SourceRange(filename, node.lineno) if node.lineno else None


def _kind(node: nodes.Node) -> str:
    """Say what a node is: what it calls, or which kind of node."""
    callee = getattr(node, "node", None)
    if isinstance(node, nodes.Call) and isinstance(callee, nodes.Name):
        return str(callee.name)
    return type(node).__name__
