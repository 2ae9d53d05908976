"""Where ``whence.h`` lies."""

import os.path


def get_include() -> str:
    """Return the folder of ``whence.h``, for a compiler's ``-I``."""
    return os.path.join(os.path.dirname(__file__), "include")
