"""From a graph to kernels: operations that can share a loop do.

An operation joins the kernel of its users if all of them are in one, and if the loop is
over as many elements. So a value that two kernels need is kept in memory, and computed
once; and no kernel needs, on any way, a value of its own that is not there yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from whence.handles import Recorder

from .graph import Constant, Graph, Input, Node, Operation


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One loop. The last operation is its result; the others are for that alone."""

    name: str
    operations: tuple[Operation, ...]
    operands: tuple[Input | Operation, ...]  # what is in memory before it runs
    handle: int

    @property
    def result(self) -> Operation:
        """What other kernels may use, or the caller."""
        return self.operations[-1]

    @property
    def loops_over_arrays(self) -> bool:
        """Without arrays the loop has one round."""
        return _loops_over_arrays(self.result)

    def reference(self, node: Node) -> str:
        """Return how a value is written inside the loop, in Python and in C."""
        if isinstance(node, Constant):
            return repr(node.value)
        if isinstance(node, Operation) and node in self.operations:
            return f"v{self.operations.index(node)}"
        index = "i" if node.is_array else "0"
        return f"a{self.operands.index(node)}[{index}]"


def fuse(graph: Graph, recorder: Recorder) -> tuple[Kernel, ...]:
    """Return the kernels of a program, in an order in which they can run."""
    groups: list[list[Operation]] = []  # each from its result back
    group_of: dict[Operation, list[Operation]] = {}
    users: dict[Node, list[Operation]] = {}
    for operation in reversed(graph.operations):  # users before what they use
        if operation is not graph.result and operation not in users:
            continue  # nobody wants it
        group = _group_to_join(operation, users.get(operation, []), group_of)
        if group is None:
            group = []
            groups.append(group)
        group.append(operation)
        group_of[operation] = group
        for operand in operation.operands:
            users.setdefault(operand, []).append(operation)
    in_order = enumerate(reversed(groups))
    return tuple(_kernel(f"kernel_{i}", group, recorder) for i, group in in_order)


def _group_to_join(
    operation: Operation,
    users: list[Operation],
    group_of: dict[Operation, list[Operation]],
) -> list[Operation] | None:
    if operation.op == "sum" or not users:  # a sum is there after the loop, not in it
        return None
    group = group_of[users[0]]
    if any(group_of[user] is not group for user in users):
        return None
    is_same_loop = operation.is_array == _loops_over_arrays(group[0])
    return group if is_same_loop else None


def _loops_over_arrays(result: Operation) -> bool:
    return any(operand.is_array for operand in result.operands)


def _kernel(name: str, group: list[Operation], recorder: Recorder) -> Kernel:
    operations = tuple(reversed(group))
    operands: dict[Input | Operation, None] = {}
    for operation in operations:
        for operand in operation.operands:
            if not isinstance(operand, Constant) and operand not in operations:
                operands[operand] = None
    handle = operations[0].handle
    if len(operations) > 1:
        # It has no place of its own: its operations have, and they may be far apart.
        handle = recorder.derive("fused", [each.handle for each in operations])
    return Kernel(name, operations, tuple(operands), handle)
