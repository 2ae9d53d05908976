"""What debug handles cost, side by side: a million, with deep stacks that share tails.

``issue`` beside ``list.append`` of a tuple of the same objects, in turns, the best of
the rounds. ``save`` and ``load`` beside ``pickle`` over equal plain objects: tuples in
place of ranges and calls. Every operation has objects of its own for its range and its
name, as a compiler that makes them on the way would have.
"""

from __future__ import annotations

import argparse
import gc
import os
import pickle
import platform
import tempfile
import time
from pathlib import Path

from whence.handles import HandleTable, InlinedCall, Recorder, SourceRange

HANDLES, STACKS, DEPTH = 1_000_000, 10_000, 50
MOST_ISSUE, MOST_FILE_TIME, MOST_BYTES = 3, 0.5, 40


def stacks(make):
    """Lists of calls, each with the half of an earlier one that is further in."""
    tails = [None]
    found = []
    for number in range(STACKS):
        call = tails[number // 7 % len(tails)]
        for level in range(DEPTH // 2):
            place = (f"file{level % 20}.ex", level + number % 300 + 1, level % 40)
            names = f"Layer{level % 9}", f"layer{number % 50}"
            call = make(f"function{(number + level) % 400}", place, *names, call)
        if len(tails) < 1000:
            tails.append(call if number % 3 else None)
        found.append(call)
    return found


def operations(make_range, made):
    for number in range(HANDLES):
        line = number % 5000 + 1
        fields = f"file{number // 5000}.ex", line, number % 60, line, number % 60 + 9
        stack = made[number // (HANDLES // STACKS)]
        yield make_range(*fields), f"aten::op{number % 300}", stack


def call_of(function, place, type_, instance, callee):
    return InlinedCall(function, SourceRange(*place), type_, instance, callee)


def timed(function):
    gc.collect()
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def appended(all_):
    kept = []
    append = kept.append
    for place, kind, stack in all_:
        append((place, kind, stack))


def issued(all_):
    issue = Recorder().issue
    for place, kind, stack in all_:
        issue(range=place, kind=kind, stack=stack)


def looped(all_):
    for _place, _kind, _stack in all_:
        pass


def verdict(passed):
    return "pass" if passed else "MISSED"


def bench_issue(rounds, all_):
    best = dict.fromkeys((looped, appended, issued), float("inf"))
    for _ in range(rounds):
        for function in best:
            best[function] = min(best[function], timed(lambda f=function: f(all_))[0])
    append, issue = (
        (best[function] - best[looped]) / HANDLES * 1e9
        for function in (appended, issued)
    )
    goal = verdict(issue <= MOST_ISSUE * append)
    print(
        f"issue {issue:.0f} ns, list.append of the same tuple {append:.0f} ns: "
        f"{issue / append:.2f} times, at most {MOST_ISSUE}: {goal}"
    )


def plain_call(*fields):
    return fields


def plain_table():
    made = stacks(plain_call)
    plain = operations(lambda *fields: fields, made)
    return dict(enumerate(plain))


def bench_files(rounds, table, folder):
    path = folder / "table.handles"
    ours, theirs = [], []
    plain = plain_table()
    for _ in range(rounds):
        saved, _ = timed(lambda: table.save(path, overwrite=True))
        loaded, again = timed(lambda: HandleTable.load(path))
        ours.append((saved + loaded, saved, loaded))
        dumped, data = timed(lambda: pickle.dumps(plain, pickle.HIGHEST_PROTOCOL))
        (folder / "plain.pickle").write_bytes(data)
        undone, _ = timed(lambda d=data: pickle.loads(d))
        theirs.append((dumped + undone, dumped, undone))
    total, saved, loaded = min(ours)
    pickled, dumped, undone = min(theirs)
    goal = verdict(total <= MOST_FILE_TIME * pickled)
    print(
        f"save {saved:.2f} s and load {loaded:.2f} s, pickle {dumped:.2f} s and "
        f"{undone:.2f} s: {total / pickled:.2f} times, at most {MOST_FILE_TIME}: {goal}"
    )
    size = path.stat().st_size / HANDLES
    goal = verdict(size <= MOST_BYTES)
    print(
        f"{size:.1f} bytes a handle, pickle {len(data) / HANDLES:.1f}; "
        f"at most {MOST_BYTES}: {goal}"
    )
    handle = next(iter(again))
    assert again[handle] == table[handle]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"== handles, CPython {platform.python_version()}")
    made = stacks(call_of)
    all_ = list(operations(SourceRange, made))
    bench_issue(options.rounds, all_)
    recorder = Recorder()
    for operation in all_:
        recorder.issue(*operation)
    with tempfile.TemporaryDirectory() as folder:
        bench_files(min(options.rounds, 3), recorder.stop(), Path(folder))


if __name__ == "__main__":
    main()
