"""Where ``whence.h`` lies."""

import pathlib


def get_include() -> str:
    """Return the folder of ``whence.h``, for a compiler's ``-I``."""
    return str(pathlib.Path(__file__).parent / "include")
