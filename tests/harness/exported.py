"""Exported files, read by tools that this project did not write, as totals by function.

Each reader gives a dictionary from what the format calls a function to ``Total``.
``expected()`` makes the same out of a recording. A tool that is not there skips the
test with a reason, and fails it in CI; ``tools/install-format-checkers`` installs them.
"""

import functools
import gzip
import json
import os
import pstats as standard_pstats
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build" / "checkers" / "node_modules"
SCHEMA = PACKAGES / "speedscope" / "dist" / "release" / "file-format-schema.json"
PROTO = Path("/usr/share/gocode/src/github.com/google/pprof/proto/profile.proto")
FORMATS = ("speedscope", "pprof", "collapsed", "pstats", "callgrind")
SUFFIXES = {"speedscope": ".speedscope.json", "pprof": ".pb.gz"}


class Total(NamedTuple):
    calls: int | None  # None: the format does not count calls
    total: int
    own: int


def needs(checker, *, there):
    """Skip the test without that checker; where CI is set, it fails."""
    if not there:
        end = pytest.fail if os.environ.get("CI") else pytest.skip
        end(f"no {checker}: tools/install-format-checkers")


def suffix(name):
    return SUFFIXES.get(name, f".{name}")


def read(name, path):
    """Read an exported file by another's tool."""
    return READERS[name](path)


def expected(name, recording):
    """Return what the file of that format must say."""
    counted = name not in ("speedscope", "collapsed")
    functions = recording.functions
    names = Counter(function[:2] for function in functions)
    return {
        _key(name, recording, f, several=names[f[:2]] > 1): Total(
            f.calls if counted else None, f.total, f.own
        )
        for f in functions
        if counted or f.total  # paths that took no time are not listed
    }


def _key(name, recording, function, *, several):
    title, file, line = function[:3]
    if name in ("speedscope", "pprof"):
        return title, file, line
    if name == "pstats":
        return file or "~", line or 0, title
    if name == "collapsed":
        return title if file is None else f"{title} ({recording.shorten(file)}:{line})"
    where = f" (line {line})" if several else ""
    return f"{file or '???'}:{title}{where}"


def add_up(samples):
    """Add up (functions of a path, calls, own): a function counts once on a path."""
    totals = {}
    for path, calls, own in samples:
        for function in set(path):
            old = totals.get(function, Total(0, 0, 0))
            totals[function] = old._replace(total=old.total + own)
        old = totals[path[-1]]
        counted = None if calls is None else old.calls + calls
        totals[path[-1]] = old._replace(calls=counted, own=old.own + own)
    if all(calls is None for _, calls, _ in samples):
        return {key: total._replace(calls=None) for key, total in totals.items()}
    return totals


# speedscope


def speedscope_file(path):
    """Load the file; check it by speedscope's own schema, if that is there."""
    with open(path, "rb") as file:
        text = file.read()
    text.decode("ascii")
    loaded = json.loads(text)
    if SCHEMA.exists():
        jsonschema = pytest.importorskip("jsonschema")
        jsonschema.validate(loaded, json.loads(SCHEMA.read_text()))
    return loaded


def speedscope(path, profile=0):
    loaded = speedscope_file(path)
    frames = [
        (frame["name"], frame.get("file"), frame.get("line"))
        for frame in loaded["shared"]["frames"]
    ]
    profile = loaded["profiles"][profile]
    assert profile["endValue"] == sum(profile["weights"])
    pairs = zip(profile["samples"], profile["weights"], strict=True)
    return add_up([([frames[i] for i in path], None, own) for path, own in pairs])


# pprof


@functools.cache
def _profile_class():
    pool = pytest.importorskip("google.protobuf.descriptor_pool")
    factory = pytest.importorskip("google.protobuf.message_factory")
    from google.protobuf import descriptor_pb2

    there = shutil.which("protoc") is not None and PROTO.exists()
    needs("protoc, or no profile.proto", there=there)
    made = subprocess.run(
        [
            *("protoc", f"--proto_path={PROTO.parent}"),
            *("--descriptor_set_out=/dev/stdout", PROTO),
        ],
        capture_output=True,
        check=True,
    )
    files = descriptor_pb2.FileDescriptorSet.FromString(made.stdout)
    pool = pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    found = pool.FindMessageTypeByName("perftools.profiles.Profile")
    return factory.GetMessageClass(found)


def pprof_file(path):
    """Parse the file by pprof's own schema; everything it refers to is there."""
    with gzip.open(path) as file:
        profile = _profile_class().FromString(file.read())
    assert profile.string_table[0] == ""
    assert len(set(profile.string_table)) == len(profile.string_table)
    functions = {function.id for function in profile.function}
    locations = {location.id: location for location in profile.location}
    assert 0 not in functions | locations.keys()
    assert len(locations) == len(profile.location)
    for sample in profile.sample:
        assert len(sample.value) == len(profile.sample_type)
        assert locations.keys() >= set(sample.location_id)
    for location in profile.location:
        assert [line.function_id in functions for line in location.line] == [True]
    return profile


def pprof(path):
    profile = pprof_file(path)
    text = profile.string_table
    names = {
        f.id: (text[f.name], text[f.filename] or None, f.start_line or None)
        for f in profile.function
    }
    of = {
        location.id: names[location.line[0].function_id]
        for location in profile.location
    }
    return add_up(
        [([of[i] for i in reversed(s.location_id)], *s.value) for s in profile.sample]
    )


# collapsed


def collapsed(path):
    samples = []
    for line in Path(path).read_text().split("\n")[:-1]:
        stack, _, own = line.rpartition(" ")
        samples.append((stack.split(";"), None, int(own)))
    return add_up(samples)


# pstats


def pstats(path):
    stats = standard_pstats.Stats(str(path)).stats
    return {
        key: Total(calls, round(total * 1e9), round(own * 1e9))
        for key, (_, calls, own, total, _) in stats.items()
    }


# callgrind


def annotate(path, *options):
    """Run callgrind_annotate; return its lines about functions."""
    needs("callgrind_annotate", there=shutil.which("callgrind_annotate") is not None)
    done = subprocess.run(
        [
            *("callgrind_annotate", "--threshold=100", "--show-percs=no"),
            *("--auto=no", *options, path),
        ],
        capture_output=True,
        text=True,
        cwd="/",  # it cuts the current directory from some of the names
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


_LINE = re.compile(r"^ *([\d,.]+) +(?:(\*|<) +)?(.*?)(?: \(([\d,]+)x\) \[\])?$")


def callgrind(path):
    calls, own, total = {}, {}, {}
    waiting = 0
    for line in _body(annotate(path, "--tree=caller")):
        number, sign, name, count = _LINE.match(line).groups()
        if sign == "<":
            waiting += _number(count)
        else:
            calls[name], waiting = waiting, 0
            own[name] = _number(number)
    for line in _body(annotate(path, "--inclusive=yes")):
        number, _, name, _ = _LINE.match(line).groups()
        total[name] = _number(number)
    assert total.pop("???:<all threads>") == program_total(path)
    return {name: Total(calls[name], total[name], own[name]) for name in total}


def program_total(path):
    (line,) = [n for n in annotate(path).splitlines() if "PROGRAM TOTALS" in n]
    return _number(line.split()[0])


def _number(text):
    return 0 if text == "." else int(text.replace(",", ""))


def _body(text):
    lines = text.split("file:function\n")[1].splitlines()[1:]
    return [line for line in lines if line.strip()]


READERS = {
    read.__name__: read for read in (speedscope, pprof, collapsed, pstats, callgrind)
}
