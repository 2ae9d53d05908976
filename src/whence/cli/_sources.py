"""Settings from the environment and from the nearest ``pyproject.toml``."""

from __future__ import annotations

import os
import sys

from whence.cli import _settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whence.cli._settings import Given

PREFIX = "WHENCE_"
OTHERS = ("WHENCE_FOLLOW", "WHENCE_FRAMES")  # which are not settings of a run
_FILE = "pyproject.toml"


def variables() -> Given:
    """Read ``WHENCE_*``, unless Python was told to ignore variables."""
    given: Given = {}
    if sys.flags.ignore_environment:
        return given
    known = {setting.variable: setting for setting in _settings.ALL}
    for name, text in os.environ.items():
        if not text:
            continue
        if name == "WHENCE_FOLLOW" and not text.startswith("{"):
            message = f"{name} is what whence tells its children: use --follow"
            raise _settings.UsageError(message)
        if not name.startswith(PREFIX) or name in OTHERS:
            continue
        setting = known.get(name)
        if setting is None:
            what = f"{name} is no variable of whence"
            raise _settings.unknown(what, name, [*known, *OTHERS])
        given[setting.name] = (_settings.from_text(setting, text, name), name)
    return given


def file() -> Given:
    """Read ``[tool.whence]`` of the nearest file from the current folder upwards."""
    given: Given = {}
    path = None if sys.flags.isolated else _find()
    for key, value in _table(path).items() if path else ():
        setting = _settings.BY_NAME.get(key.replace("-", "_"))
        if setting is None:
            what = f"{path}: tool.whence has no key {key}"
            raise _settings.unknown(what, key, _settings.BY_NAME)
        source = f"{path}: tool.whence.{key}"
        if setting.name in given:
            message = f"{source} is there twice, with a dash and with an underscore"
            raise _settings.UsageError(message)
        given[setting.name] = (_settings.from_file(setting, value, source), source)
    return given


def _find() -> str | None:
    try:
        folder = os.getcwd()
    except OSError:  # it is gone
        return None
    while True:
        path = os.path.join(folder, _FILE)
        if os.path.isfile(path):
            return path
        folder, before = os.path.dirname(folder), folder
        if folder == before:
            return None


def _table(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise _settings.UsageError(message) from None
    # Most often: nothing is imported for it. UTF-16 is an error, but not for everybody.
    if b"whence" not in content.replace(b"\0", b""):
        return {}
    import tomllib  # noqa: PLC0415

    try:
        tool = tomllib.loads(content.decode()).get("tool", {})
    except ValueError as error:
        message = f"{path}: {error}"
        raise _settings.UsageError(message) from None
    table = tool.get("whence", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        message = f"{path}: tool.whence must be a table"
        raise _settings.UsageError(message)
    return table
