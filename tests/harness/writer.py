"""The process that is killed: records, and lets eight threads write until then.

python writer.py RECORDING PAGE FOLDER-OF-RUDE CHUNK-SIZE MAX-SIZE PAUSE
"""

import sys
import threading
import time

path, page_path, folder, chunk_size, max_size, pause = sys.argv[1:]
sys.path.insert(0, folder)

import rude  # noqa: E402

import whence  # noqa: E402
from harness import numbered  # noqa: E402

page = numbered.Page(page_path)
recorder = whence.record(
    path,
    pack=False,
    gc=False,
    chunk_size=int(chunk_size),
    max_size=int(max_size) or None,
    calls=False,
)
recorder.start()
half = numbered.WRITERS // 2
numbered.write_in_python(page, range(half), threading.Event(), int(pause))
names = [f"w{number}" for number in range(half, numbered.WRITERS)]
rude.write_numbered(names, half, page.memory, int(pause) * 20)
print("writing", flush=True)
time.sleep(60)
