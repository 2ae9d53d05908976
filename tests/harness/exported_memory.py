"""Memory in exported files: bytes by stack, as other tools read them.

A stack is a tuple of (name, file, line), outermost first, the line being that which
ran. Each reader gives a dictionary from stacks to bytes.
"""

import json
from collections import Counter

import pytest

from harness import exported

NOWHERE = (("<no Python code>", None, 0),)
METRICS = ("peak", "leaks", "allocated")


def expected(recording, metric):
    """Return what the API says."""
    memory = recording.memory
    groups = {
        "peak": lambda: memory.peak.groups,
        "leaks": memory.leaks,
        "allocated": memory.allocated,
    }[metric]()
    found = Counter()
    for group in groups:
        found[stack_of(group)] += group.bytes
    return +found


def stack_of(group):
    frames = [(f.name, f.filename, f.line or 0) for f in reversed(group.stack)]
    return tuple(frames) or NOWHERE


def shortened(recording, stacks):
    """Return the same with stacks as collapsed lines have them."""
    found = Counter()
    for stack, size in stacks.items():
        frames = [
            name if file is None else f"{name} ({recording.shorten(file)}:{line})"
            for name, file, line in stack
        ]
        found[";".join(frame.replace(";", ":") for frame in frames)] += size
    return found


def collapsed(path):
    found = Counter()
    for line in path.read_text().splitlines():
        stack, _, number = line.rpartition(" ")
        found[stack] += int(number)
    return found


def speedscope(path):
    loaded = exported.speedscope_file(path)
    (profile,) = loaded["profiles"]
    assert (profile["type"], profile["unit"]) == ("sampled", "bytes")
    assert profile["endValue"] == sum(profile["weights"])
    frames = [
        (frame["name"], frame.get("file"), frame.get("line", 0))
        for frame in loaded["shared"]["frames"]
    ]
    found = Counter()
    for sample, weight in zip(profile["samples"], profile["weights"], strict=True):
        found[tuple(frames[i] for i in sample)] += weight
    return found


def pprof(path):
    """Return the bytes of each type, and which of them is shown first."""
    profile = exported.pprof_file(path)
    text = profile.string_table
    functions = {
        f.id: (text[f.name], text[f.filename] or None) for f in profile.function
    }
    places = {
        location.id: (*functions[line.function_id], line.line)
        for location in profile.location
        for line in location.line
    }
    types = [text[each.type] for each in profile.sample_type]
    units = [text[each.unit] for each in profile.sample_type]
    assert units == ["count", "bytes"] * 2
    found = {type_: Counter() for type_ in types}
    for sample in profile.sample:
        stack = tuple(places[id_] for id_ in reversed(sample.location_id))
        for type_, value in zip(types, sample.value, strict=True):
            found[type_][stack] += value
    return found, text[profile.default_sample_type]


def query(folder, sql):
    """Ask DuckDB about the tables of a Parquet directory."""
    duckdb = pytest.importorskip("duckdb")
    for table in ("alloc", "stack", "usage", "resident"):
        sql = sql.replace(f"@{table}", f"'{folder}/{table}.parquet'")
    return duckdb.sql(sql).fetchall()


def torch(path):
    """Load a snapshot; what must be true of every one is."""
    snapshot = json.loads(path.read_text(encoding="ascii"))
    assert set(snapshot) >= {"segments", "device_traces"}
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:  # without gaps, from end to end
            assert block["address"] == at
            at += block["size"]
        assert at == segment["address"] + segment["total_size"]
        active = [b for b in segment["blocks"] if b["state"] == "active_allocated"]
        assert segment["allocated_size"] == sum(b["size"] for b in active)
        assert segment["device"] < len(snapshot["device_traces"])
    return snapshot


def frames_of(entry):
    """Return the frames of a block or an event of a snapshot as a stack."""
    frames = [(f["name"], f["filename"], f["line"]) for f in entry["frames"]]
    return tuple(reversed(frames)) or NOWHERE
