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


class Library:
    """One library: what a line came from, and whether to ask about a file at all."""

    __slots__ = ("knows", "provide")

    def __init__(
        self, provide: Callable[[str, int], list[Frame]], knows: Callable[[str], bool]
    ) -> None:
        self.provide = provide
        self.knows = knows


def active() -> list[Library]:
    """Return each library that is there."""
    modules = sys.modules
    return [make(modules[name]) for name, make in _MAKERS.items() if modules.get(name)]


def _jinja2(environment: Any) -> Library:
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

    def candidates(filename: str) -> list[Any]:
        nonlocal templates
        if filename.endswith(".py") or (
            filename.startswith("<") and filename != "<template>"
        ):
            return []
        if templates is None:
            templates = loaded()
        found = templates.get(filename, [])
        is_any_string = filename == "<template>" and len(found) > 1
        return [] if is_any_string else found

    def provide(filename: str, line: int) -> list[Frame]:
        # One file has a template for each environment, and others that await the
        # collector: they may all be meant, if they say the same.
        found = {
            (template.name, template.get_corresponding_lineno(line))
            for template in candidates(filename)
        }
        if len(found) != 1:
            return []
        ((name, source_line),) = found
        return [Frame(name or "<template>", filename, source_line)]

    return Library(provide, lambda filename: bool(candidates(filename)))


def _inductor(codecache: Any) -> Library:
    """Find the model code behind a line of ``torch._inductor`` output."""

    def knows(filename: str) -> bool:
        return filename in codecache.PyCodeCache.linemaps

    def provide(filename: str, line: int) -> list[Frame]:
        if not knows(filename):
            return []  # what is asked below is remembered there for ever
        found = codecache.PyCodeCache.stack_frames_for_code(filename, line)
        return [
            Frame(frame["name"], frame["filename"], frame["line"])
            for frame in found or ()
        ]

    return Library(provide, knows)


def _ipython(interactiveshell: Any) -> Library:
    """Find the input cell behind the file name that IPython makes up for it."""

    def label(filename: str) -> Any:
        shell_class = interactiveshell.InteractiveShell
        if not shell_class.initialized():
            return None
        return shell_class.instance().compile.format_code_name(filename)

    def provide(filename: str, line: int) -> list[Frame]:
        found = label(filename)
        return [Frame("<cell>", " ".join(found), line)] if found else []

    return Library(provide, lambda filename: bool(label(filename)))


_MAKERS = {
    "jinja2.environment": _jinja2,
    "torch._inductor.codecache": _inductor,
    "IPython.core.interactiveshell": _ipython,
}
