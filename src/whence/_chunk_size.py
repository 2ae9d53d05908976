"""How much of the file a thread takes at a time."""

import os

from whence import _units

DEFAULT = 256 * 1024
SMALLEST = 4096
LARGEST = 16 * 1024 * 1024
_FEWEST = 64  # chunks in a ring, so that what is lost at a time is a small part of it


def choose(wanted: int | str | None, max_size: int) -> int:
    """Return a multiple of the page size, small enough for a ring of that size."""
    page = os.sysconf("SC_PAGE_SIZE")
    if wanted is None:
        fitting = max_size // _FEWEST // page * page
        chosen = min(DEFAULT, fitting) if max_size else DEFAULT
        chosen = max(chosen, page)
    else:
        chosen = _units.size(wanted, "chunk_size")
        if not SMALLEST <= chosen <= LARGEST or chosen % page:
            message = (
                f"chunk_size must be a multiple of {page} from {SMALLEST} to "
                f"{LARGEST} bytes, not {wanted!r}"
            )
            raise ValueError(message)
    if max_size and max_size < page + 4 * chosen:
        message = f"max_size must be at least {page + 4 * chosen} bytes, not {max_size}"
        raise ValueError(message)
    return chosen
