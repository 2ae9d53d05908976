"""An operator that passes numbers on, and says who computed what is none.

Whether Python or generated code calls it: the error keeps the stack, for 32 bytes, and
names it when somebody asks.
"""

from __future__ import annotations

import torch

import whence


class NotFiniteError(FloatingPointError):
    """Something computed an infinity, or what is no number."""

    def __init__(self, stack: whence.Stack) -> None:
        super().__init__("what is not finite was computed")
        self.stack = stack


@torch.library.custom_op("whence_example::finite", mutates_args=())
def finite(x: torch.Tensor) -> torch.Tensor:
    """Return a copy, since operators give nothing back that they were given."""
    if not bool(torch.isfinite(x).all()):
        raise NotFiniteError(whence.capture())
    return x.clone()


@finite.register_fake
def _shape(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)
