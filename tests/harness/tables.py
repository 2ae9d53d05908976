"""Random tables of handles, and what a table of the twin says in whence's own words."""

from reference import handles as twin
from whence.handles import HandleRecord, InlinedCall, Recorder, SourceRange

NAMES = [
    *("f", "forward", "g.h", "", "é", "名前", "\udc80x", "a\nb", "\U0001f600"),
    *("x" * 200, "model.ex", "lib/é.ex"),
]


def random_range(rng):
    if rng.random() < 0.1:
        return None
    line = rng.choice([1, rng.randint(1, 500), 2**31 - 1])
    column = rng.choice([None, 0, rng.randint(0, 200), 2**31 - 1])
    end = rng.choice([None, line, min(line + rng.randint(0, 9), 2**31 - 1)])
    return SourceRange(
        rng.choice(NAMES), line, column, end, rng.choice([None, 0, rng.randint(0, 99)])
    )


def random_stacks(rng, count=12):
    """Lists of calls that share tails."""
    stacks = [None]
    for _ in range(count):
        names = [rng.choice([None, *NAMES]) for _ in range(2)]
        callee = rng.choice(stacks)
        stacks.append(InlinedCall(rng.choice(NAMES), random_range(rng), *names, callee))
    return stacks


def random_table(rng, size=30):
    recorder = Recorder(top=rng.choice([None, "Model", "é"]))
    stacks = random_stacks(rng)
    issued = []
    for _ in range(rng.randint(0, size)):
        if issued and rng.random() < 0.3:
            parents = [
                rng.choice([*issued, -1, 12345]) for _ in range(rng.randint(0, 4))
            ]
            own = {"range": random_range(rng), "stack": rng.choice(stacks)}
            op = rng.choice([None, *NAMES])
            kind = rng.choice(twin.EDGES)
            issued.append(recorder.derive(kind, parents, op=op, **own))
        else:
            arguments = random_range(rng), rng.choice(NAMES), rng.choice(stacks)
            issued.append(recorder.issue(*arguments))
        for _ in range(rng.choice([0, 0, 0, 300])):  # gaps
            Recorder().issue(None, "")
    return recorder.stop()


def records_of(part):
    """Return what a part of the twin holds: handles and their records."""

    def text(place):
        return None if place is None else part.strings[place]

    ranges = [
        SourceRange(text(r.filename), r.line, r.column, r.end_line, r.end_column)
        for r in part.ranges
    ]
    calls = []
    for call in part.calls:
        place = None if call.range is None else ranges[call.range]
        callee = None if call.callee is None else calls[call.callee]
        names = text(call.type), text(call.instance)
        calls.append(InlinedCall(text(call.function), place, *names, callee))
    edges = {edge.record: edge for edge in part.edges}
    found = {}
    for number, record in enumerate(part.records):
        edge = edges.get(number)
        made_from = (twin.EDGES[edge.kind], tuple(edge.parents)) if edge else ()
        found[record.handle] = HandleRecord(
            None if record.range is None else ranges[record.range],
            text(record.kind),
            None if record.stack is None else calls[record.stack],
            *made_from,
        )
    return found
