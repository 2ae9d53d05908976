"""A small model, as somebody might write it: of whence, only ``finite`` knows."""

from __future__ import annotations

import torch
from torch import nn

from finite import finite

WORDS = 16


class Words(nn.Module):
    """What is known of each word."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(WORDS, width)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.table(text)


class Layer(nn.Module):
    """A linear layer, bent and scaled."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self.linear(x)
        bent = torch.relu(mixed)
        return bent * self.scale


class Scorer(nn.Module):
    """Scores each word of a text."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.words = Words(width)
        self.first = Layer(width)
        self.second = Layer(width)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.words(text)
        x = self.first(x)
        x = finite(x)
        x = self.second(x)
        return x.sum(dim=-1)
