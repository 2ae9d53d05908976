"""Packing and unpacking the payload of chunks. Imported only when that is needed."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # mypy checks against 3.11, where it need not be installed
    from typing import Any

    zstd: Any
elif sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 3
# No chunk is larger than 16 MB; a frame that wants a larger window is not ours.
_WINDOW_LOG = 24


def pack(payload: bytes) -> bytes:
    packed: bytes = zstd.compress(payload, _LEVEL)
    return packed


def unpack(packed: bytes, size: int, is_cut: bool = False) -> bytes:  # noqa: FBT001, FBT002
    """Unpack exactly ``size`` bytes; no bytes if that is not what there is.

    Of a frame that ``is_cut``: what there is of them. Nothing is kept in between.
    """
    options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    decompressor = zstd.ZstdDecompressor(options=options)
    try:
        payload: bytes = decompressor.decompress(packed, max_length=size)
    except zstd.ZstdError:
        return b""
    if is_cut:
        return payload
    whole = decompressor.eof and not decompressor.unused_data
    return payload if whole and len(payload) == size else b""
