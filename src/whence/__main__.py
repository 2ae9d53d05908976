"""``python -m whence``: the command line."""

import sys

from whence.cli import main

if code := main():  # else what comes after, like the prompt of -i, may come
    sys.exit(code)
