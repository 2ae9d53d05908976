"""Providers that whence brings along, each for one library.

A provider is active only if its library is already imported, and never imports
anything: naming a stack must not change the program. Each is made anew for a batch of
stacks, so what it finds out is asked once a batch and nothing of the program is kept
afterwards.
"""

from __future__ import annotations

import gc
import sys

from whence._frame import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def active() -> list[Callable[[str, int], list[Frame]]]:
    """Return a provider for each library that is there."""
    modules = sys.modules
    return [make(modules[name]) for name, make in _MAKERS.items() if modules.get(name)]


def _jinja2(environment: Any) -> Callable[[str, int], list[Frame]]:
    """Find the line of a Jinja2 template behind its compiled Python.

    The compiled code carries the template's file name, or ``<template>`` if it came
    from a string. Which line is which is known to the Template object alone, and those
    are found through the collector.
    """
    templates: dict[str, list[Any]] | None = None

    def loaded() -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        classes = [environment.Template]
        for cls in classes:
            classes += cls.__subclasses__()
        for referrer in gc.get_referrers(*classes):
            if type(referrer) in classes:
                found.setdefault(referrer.filename or "<template>", []).append(referrer)
        return found

    def provide(filename: str, line: int) -> list[Frame]:
        nonlocal templates
        if filename.endswith(".py") or (
            filename.startswith("<") and filename != "<template>"
        ):
            return []
        if templates is None:
            templates = loaded()
        candidates = templates.get(filename, [])
        if len(candidates) != 1:  # several templates from strings: no telling which
            return []
        template = candidates[0]
        source_line = template.get_corresponding_lineno(line)
        return [Frame(template.name or "<template>", filename, source_line)]

    return provide


def _inductor(codecache: Any) -> Callable[[str, int], list[Frame]]:
    """Find the model code behind a line of ``torch._inductor`` output."""

    def provide(filename: str, line: int) -> list[Frame]:
        found = codecache.PyCodeCache.stack_frames_for_code(filename, line)
        return [
            Frame(frame["name"], frame["filename"], frame["line"])
            for frame in found or ()
        ]

    return provide


def _ipython(interactiveshell: Any) -> Callable[[str, int], list[Frame]]:
    """Find the input cell behind the file name that IPython makes up for it."""

    def provide(filename: str, line: int) -> list[Frame]:
        shell_class = interactiveshell.InteractiveShell
        if not shell_class.initialized():
            return []
        label = shell_class.instance().compile.format_code_name(filename)
        return [Frame("<cell>", " ".join(label), line)] if label else []

    return provide


_MAKERS = {
    "jinja2.environment": _jinja2,
    "torch._inductor.codecache": _inductor,
    "IPython.core.interactiveshell": _ipython,
}
