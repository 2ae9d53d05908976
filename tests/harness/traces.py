"""Traces as their readers see them: Perfetto's by its schema, Chrome's as JSON."""

import gzip
import json
from collections import defaultdict

import pytest

from whence import export

BEGIN, END, COUNTER = 1, 2, 4  # of Perfetto's TrackEvent.Type


def nested(events):
    """Pair begins with ends by a stack for each track: (track, name, start, end).

    ``events`` are (track, kind, name, time), in the order of time within a track.
    """
    stacks = defaultdict(list)
    last = {}
    for track, kind, name, time in events:
        assert time >= last.get(track, 0)
        last[track] = time
        if kind == BEGIN:
            stacks[track].append((name, time))
        elif kind == END:
            begun, start = stacks[track].pop()
            yield track, begun, start, time
    assert not any(stacks.values())


class Perfetto:
    """A trace as a reader that knows nothing of us sees it."""

    def __init__(self, data):  # noqa: C901
        schema = pytest.importorskip(
            "perfetto.protos.perfetto.trace.perfetto_trace_pb2"
        )
        trace = schema.Trace()
        trace.ParseFromString(data)
        self.tracks = {}
        self.events = []
        self.places = {}
        self.functions = []  # of each event: the name, file and line that it refers to
        clocks, defaults, names, sources = {}, {}, {}, {}
        for packet in trace.packet:
            sequence = packet.trusted_packet_sequence_id
            assert sequence
            if packet.sequence_flags & 1:
                names[sequence] = {}
            for clock in packet.clock_snapshot.clocks:
                if clock.clock_id == 64:
                    assert clock.is_incremental
                    clocks[sequence] = clock.timestamp
            if packet.HasField("trace_packet_defaults"):
                defaults[sequence] = packet.trace_packet_defaults
            for name in packet.interned_data.event_names:
                names[sequence][name.iid] = name.name
            for place in packet.interned_data.source_locations:
                name = names[sequence][place.iid]
                self.places[name] = (place.file_name, place.line_number)
                sources[sequence, place.iid] = name, place.file_name, place.line_number
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            event, time = packet.track_event, packet.timestamp
            track = event.track_uuid
            if sequence in defaults:
                assert defaults[sequence].timestamp_clock_id == 64
                clocks[sequence] += time
                time = clocks[sequence]
                track = defaults[sequence].track_event_defaults.track_uuid
            name = event.name or names.get(sequence, {}).get(event.name_iid)
            self.events.append((track, event.type, name, time, event))
            source = sources.get((sequence, event.source_location_iid))
            self.functions.append(source or (name, None, None))

    def slices(self, which):
        chosen = [e[:4] for e in self.events if which(self.tracks.get(e[0]))]
        return nested(sorted(chosen, key=lambda e: e[3]))  # stable within a sequence


def chrome(recording, target):
    export.export(recording, target)
    data = target.read_bytes()
    return json.loads(gzip.decompress(data) if target.suffix == ".gz" else data)


def lengths(events):
    """Return the complete events as (row, name, start, end), in nanoseconds."""
    return [
        (
            (event["pid"], event["tid"]),
            event["name"],
            round(event["ts"] * 1000),
            round(event["ts"] * 1000) + round(event["dur"] * 1000),
        )
        for event in events
        if event["ph"] == "X"
    ]
