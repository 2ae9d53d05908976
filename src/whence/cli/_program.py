"""The program that is run: a script, a module, a text; each as ``python`` runs it."""

from __future__ import annotations

import os
import sys
from io import open_code

from whence import _core
from whence.cli import _import_path, _main_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHOWS_COMMANDS = (3, 13)  # from there on, tracebacks have the lines of -c
_DEDENTS_COMMANDS = (3, 14)
_COMMAND = "<string>"  # what a command has for a file name
_PYC_HEADER = 16


class CannotOpen(Exception):  # noqa: N818
    """There is no such script. The message is Python's."""


class Program:
    """What is common to all of them."""

    def __init__(self, target: str, arguments: list[str]) -> None:
        self._target = target
        self._arguments = arguments
        self._names: dict[str, Any] = {}  # of its __main__
        self.title = target  # what the recording calls it
        self.stem = target.replace("/", "_")  # what the name of its file begins with

    def prepare(self) -> None:
        """Make this process what it is when Python was started for the program."""
        raise NotImplementedError

    def load(self) -> tuple[Any, ...]:
        """Return what is to be called then, and with what."""
        raise NotImplementedError

    def is_there(self) -> bool:
        """Tell whether there is anything to record: else Python will say that."""
        return True

    def left(self) -> None:
        """Do what Python does when the program was left, in whatever way."""

    def ended(self) -> None:
        """Do what it does next, but not after an exit."""


class Module(Program):
    """``-m module``."""

    def prepare(self) -> None:
        sys.argv = ["-m", *self._arguments]  # until the module is found
        if (folder := _import_path.current_folder()) is not None:
            _import_path.put_first(folder)
        _main_module.make()

    def load(self) -> tuple[Any, ...]:
        return _core.call_alone, _run_as_main(), self._target

    def is_there(self) -> bool:
        from importlib.util import find_spec  # noqa: PLC0415

        try:
            return find_spec(self._target.partition(".")[0]) is not None
        except (ImportError, ValueError):
            return True


class Command(Program):
    """``-c code``."""

    def __init__(self, target: str, arguments: list[str]) -> None:
        super().__init__(target, arguments)
        self.title, self.stem = "-c", "command"

    def prepare(self) -> None:
        sys.argv = ["-c", *self._arguments]
        _import_path.put_first("")
        self._names = _main_module.make()

    def load(self) -> tuple[Any, ...]:
        text = self._target + "\n"
        if sys.version_info >= _DEDENTS_COMMANDS and text[:1].isspace():
            from textwrap import dedent  # noqa: PLC0415

            text = dedent(text)
        code = compile(text, _COMMAND, "exec", dont_inherit=True)
        if sys.version_info >= _SHOWS_COMMANDS:
            _remember_source(code, text)
        return _core.execute_alone, code, self._names


class _File(Program):
    """What is read as a file."""

    def left(self) -> None:
        """Flush the streams; what is wrong with them is found out at exit."""
        for name in ("stderr", "stdout") if self._names else ():
            try:  # noqa: SIM105 - what contextlib does would be recorded
                _core.call_alone(getattr(sys, name).flush)
            except Exception:  # noqa: BLE001, S110
                pass

    def ended(self) -> None:
        """Threads and functions of ``atexit`` that look from now on find no file."""
        _main_module.forget_file(self._names)


class Stdin(_File):
    """``-``: what comes on the standard input."""

    def __init__(self, target: str, arguments: list[str]) -> None:
        super().__init__(target, arguments)
        self.stem = "stdin"

    def prepare(self) -> None:
        sys.argv = ["-", *self._arguments]
        _import_path.put_first("")
        self._names = _main_module.make()
        _main_module.name_file(self._names, "<stdin>")

    def load(self) -> tuple[Any, ...]:
        with open(0, "rb", closefd=False) as file:
            content = file.read()
        return _core.execute_alone, _compile(content, "<stdin>"), self._names


class Script(_File):
    """A file; or a folder or an archive with ``__main__.py`` in it."""

    def __init__(self, target: str, arguments: list[str]) -> None:
        super().__init__(target, arguments)
        self._filename = _import_path.absolute(target)
        name = os.path.basename(os.path.normpath(self._filename))
        self.title = name
        self.stem = name if os.path.isdir(target) else os.path.splitext(name)[0]
        self._content: bytes | None = None

    def prepare(self) -> None:
        sys.argv = [self._target, *self._arguments]
        if _import_path.can_be_searched(self._filename):
            _import_path.put_first(self._filename, even_if_safe=True)
            _main_module.make()
            return
        self._content = _read(self._filename)
        _import_path.put_first(_import_path.folder_of(self._target))
        self._names = _main_module.make()
        _main_module.name_file(self._names, self._filename)
        source = not _is_compiled(self._filename, self._content)
        _main_module.load_by(self._names, self._filename, source=source)

    def load(self) -> tuple[Any, ...]:
        if self._content is None:
            return _core.call_alone, _run_as_main(), "__main__", False
        return _core.execute_alone, _compile(self._content, self._filename), self._names


def _remember_source(code: Any, text: str) -> None:
    """Put it where tracebacks look for it. Once, that was by the name of a file."""
    import linecache  # noqa: PLC0415

    key = code if hasattr(linecache, "_interactive_cache") else _COMMAND
    linecache._register_code(key, text, _COMMAND)  # type: ignore[attr-defined] # noqa: SLF001


def _run_as_main() -> Any:
    import runpy  # noqa: PLC0415

    return runpy._run_module_as_main  # type: ignore[attr-defined] # noqa: SLF001


def _read(filename: str) -> bytes:
    try:
        with open_code(filename) as file:
            return file.read()
    except OSError as error:
        message = f"{sys.orig_argv[0]}: can't open file {filename!r}: "
        raise CannotOpen(message + f"[Errno {error.errno}] {error.strerror}") from None


def _is_compiled(filename: str, content: bytes) -> bool:
    return filename.endswith(".pyc") or content[:2] == _main_module.MAGIC_NUMBER[:2]


def _compile(content: bytes, filename: str) -> Any:
    if not _is_compiled(filename, content):
        return compile(content, filename, "exec", dont_inherit=True)
    import marshal  # noqa: PLC0415

    if content[:4] != _main_module.MAGIC_NUMBER:
        message = "Bad magic number in .pyc file"
        raise RuntimeError(message)
    return marshal.loads(content[_PYC_HEADER:])  # noqa: S302
