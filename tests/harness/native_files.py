"""Recordings with native frames, of libraries that need not be there."""

from reference import recording as twin
from reference import recordings
from whence import _recording

_FIRST_TEXT = 900  # no recording of the twin has so many


def write(path, modules, symbols=(), *, boot=None, began=None, **changes):
    """Write a recording with modules (path, build id, addresses) in the order given.

    ``symbols`` are (number of the module, address, name, file, line); ``began`` is what
    the monotonic clock said, ``changes`` are of the file as a whole.
    """
    file = recordings.every_kind()
    metadata = next(c for c in file.chunks if c.what == twin.METADATA)
    native = (0x73, 0x74, 0x87, 0xA7, 0x2B)
    records = [record for record in metadata.records if record.code not in native]
    texts = {}

    def text(value):
        value = value if isinstance(value, bytes) else value.encode()
        if value not in texts:
            texts[value] = _FIRST_TEXT + len(texts)
            records.append(twin.Raw(0xE0, [texts[value], value]))
        return texts[value]

    stack = 100
    for number, (place, build_id, addresses) in enumerate(modules, 1):
        records.append(twin.Raw(0x73, [number, text(place), text(build_id)]))
        for address in addresses:
            stack += 1
            records.append(twin.Raw(0x87, [stack, 0, number, address]))
    for number, address, name, filename, line in symbols:
        ids = text(name), text(filename)
        records.append(twin.Raw(0xA7, [number, address, *ids, line]))
    if boot is not None:
        records.append(twin.Raw(0xE3, [text("boot"), boot.encode()]))
    metadata.records = records
    if began is not None:
        _begin(file, began)
    for name, value in changes.items():
        setattr(file, name, value)
    path.write_bytes(twin.write(file))
    return path


def _begin(file, monotonic):
    for each in (file, *file.chunks):
        for edge in ("start", "end"):
            ticks, then = getattr(each, edge)
            setattr(each, edge, (ticks, then - 5_000_000 + monotonic))


def symbols_of(path):
    """What a recording says of each address, by module and address."""
    with _recording.open(path) as recording:
        reader = _recording.parts_of(recording)[0].reader
        return {frame: reader.symbols(*frame) for frame in reader.native_frames()}
