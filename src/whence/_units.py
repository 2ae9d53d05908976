"""Sizes and durations as people write them."""

_SIZES = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "": 1, "s": 1, "m": 60, "h": 3600}


def _parse(text: str, units: dict[str, float]) -> float | None:
    text = text.strip().lower().replace("_", "")
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz").rstrip()
    unit = text[len(number) :].strip().replace("ib", "b")
    try:
        return float(number) * units[unit]
    except (ValueError, KeyError):
        return None


def size(value: int | str, name: str) -> int:
    """Return a number of bytes: ``8388608``, ``"8MB"``, ``"1.5 GB"``."""
    parsed = _parse(value, dict(_SIZES)) if isinstance(value, str) else value
    if parsed is None or isinstance(parsed, bool) or not 0 < parsed < 2**62:
        message = f"{name} must be bytes or a text like '200MB', not {value!r}"
        raise ValueError(message)
    return int(parsed)


def nanoseconds(value: float | str, name: str) -> int:
    """Return a duration: ``30``, ``"30s"``, ``"500ms"``, ``"2m"``."""
    parsed = _parse(value, dict(_SECONDS)) if isinstance(value, str) else value
    number = isinstance(parsed, (int, float)) and not isinstance(parsed, bool)
    if parsed is None or not number or not 0 < parsed < 2**33:
        message = f"{name} must be seconds or a text like '30s', not {value!r}"
        raise ValueError(message)
    return max(1, round(parsed * 1e9))


def moment(value: str, name: str) -> int:
    """Return a time since the beginning, in nanoseconds: ``"0"``, ``"1.5s"``."""
    parsed = _parse(value, dict(_SECONDS))
    if parsed is None or not 0 <= parsed < 2**33:
        message = f"{name} must be a time like '1.5s' or '500ms', not {value!r}"
        raise ValueError(message)
    return round(parsed * 1e9)
