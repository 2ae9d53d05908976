"""``whence recover FILE -o OUT``: what can be read of a recording, as a sound one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from whence import _packing, _recording
from whence.cli._terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its arguments."""
    parser = verbs.add_parser(
        "recover",
        help="write what can be read of a damaged recording to a new file",
        description="Write what can be read of a recording to a new, closed one. What "
        "is lost is counted there as damaged.",
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="the new recording"
    )
    parser.add_argument(
        "-f", "--force", action="store_true", help="replace OUT if it exists"
    )
    parser.add_argument(
        "--no-pack", dest="pack", action="store_false", help="do not pack with zstd"
    )
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Write the new recording and print what is in it."""
    out = Path(given.output)
    with _recording.open(given.file) as recording:
        if given.force:
            beside = out.with_name(f".{out.name}.{secrets.token_hex(8)}")
            totals = _write(recording, beside, pack=given.pack)
            beside.replace(out)
        else:
            totals = _write(recording, out, pack=given.pack)
    dropped = sum(totals["dropped"].values())
    say(f"{given.output}: {totals['recorded']:,} events, {dropped:,} lost")
    return 0


def _write(recording: _recording.Recording, out: Path, *, pack: bool) -> dict[str, Any]:
    """Write a file that did not exist; leave none behind if that fails."""
    file = _packing.create(str(out))
    try:
        totals = _recording.rewrite(recording, file, pack=pack)
        os.fsync(file)
    except BaseException:
        out.unlink()
        raise
    finally:
        os.close(file)
    return totals
