"""Writes the golden files that do not exist yet. Those that do stay for ever."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from reference import recording, recordings, work_stories  # noqa: E402
from unit.test_recording_format import contents  # noqa: E402
from whence import _zstd  # noqa: E402
from whence.handles import HandleTable  # noqa: E402

GOLDEN = {
    "fixed-1.0": (recordings.every_kind(), recording.FIXED, None),
    "packed-1.0": (recordings.every_kind(20), recording.COMPACT, _zstd.pack),
    "recoded-1.0": (recordings.every_kind(20), recording.COMPACT, _zstd.pack),
    "native-1.0": (recordings.every_kind(), recording.FIXED, None),
}
for name, (file, layout, pack) in GOLDEN.items():
    target = HERE / f"{name}.whence"
    if not target.exists():
        file.header_size = 512
        target.write_bytes(recording.write(file, layout, pack))
        text = json.dumps(contents(target.read_bytes()), indent=1)
        (HERE / f"{name}.json").write_text(text + "\n")

target = HERE / "table-1.0.handles"
if not target.exists():
    target.write_bytes(work_stories.table())
    text = HandleTable.load(target).to_json()
    target.with_suffix(".json").write_text(text + "\n")
