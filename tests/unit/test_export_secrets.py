"""Recordings and exports hold names, never values: what is planted is not found."""

import gzip
import json
import os
import pstats
import subprocess
import sys

import pytest

import whence
from harness.walks import IS_FAST
from whence import _recording
from whence.export import FORMATS, export

# Each canary is put together when the program runs, but for those in its source.
PROGRAM = '''
import os, sys, threading
import whence

def secret(kind):
    return "-".join(["canary", kind, "k3pt"])

def findable_name(argument, *rest, keyword=None):
    """A docstring: canary-docstring-k3pt."""
    local = secret("local") + argument  # a comment: canary-comment-k3pt
    return [local, "canary-literal-k3pt", rest, keyword]

class Holder:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return secret("repr")

    def method(self):
        return findable_name(self.value, self, keyword=secret("keyword"))

def generate(value):
    sent = yield value
    yield sent

def fail(message):
    raise ValueError(message)

def work():
    Holder(secret("attribute")).method()
    findable_name(secret("argument"), os.environ["SECRET"], sys.argv[1])
    generator = generate(secret("yielded"))
    next(generator)
    generator.send(secret("sent"))
    try:
        fail(secret("message"))
    except ValueError:
        pass
    print(secret("printed"), file=open(os.devnull, "w"))
    whence.mark("findable_mark")
    with whence.span("findable_span", item=Holder(secret("tag"))):
        pass

options = dict(c_calls=True, exceptions=True, memory=True)
with whence.record(sys.argv[2], pack=False, **options):
    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
'''


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "SECRET": "canary-environment-k3pt"}
    arguments = ["--password=canary-command-k3pt", folder / "plain.whence"]
    subprocess.run(
        [sys.executable, folder / "program.py", *arguments],
        check=True,
        env=environment,
        timeout=60,
    )
    with (
        whence.open(folder / "plain.whence") as recording,
        open(folder / "packed.whence", "w+b") as file,
    ):
        _recording.rewrite(recording, file.fileno())
    return folder


def check(data):
    assert b"findable_name" in data
    for word in (b"canary", b"k3pt"):
        at = data.find(word)
        assert at == -1, data[max(0, at - 40) : at + 60]


def test_recordings(recorded):
    check((recorded / "plain.whence").read_bytes())
    with whence.open(recorded / "packed.whence") as recording:
        check("\n".join(map(repr, recording)).encode())
        check("\n".join(map(repr, recording.calls().read())).encode())


@pytest.mark.parametrize("suffix", [s for each in FORMATS for s in each.suffixes])
def test_exports(suffix, recorded, tmp_path):
    out = tmp_path / f"app{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    if suffix == ".torch.json" and not IS_FAST:
        pytest.skip("no names without stacks")
    for which in ("plain", "packed"):
        with whence.open(recorded / f"{which}.whence") as recording:
            export(recording, out, force=True)
        check(content(out))


def content(out):
    """The bytes of a file, unpacked, and its texts without escapes."""
    if out.suffix == ".parquet":
        from pyarrow import parquet

        tables = [parquet.read_table(file) for file in sorted(out.iterdir())]
        return repr([table.to_pydict() for table in tables]).encode()
    data = out.read_bytes()
    if out.suffix == ".gz":
        data = gzip.decompress(data)
    if ".json" in out.suffixes:
        data += json.dumps(json.loads(data), ensure_ascii=False).encode()
    if out.suffix == ".pstats":
        data += repr(pstats.Stats(str(out)).stats).encode()
    return data
