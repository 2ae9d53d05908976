"""The tools that a suite can run under: ours, and others that must not notice it.

Each has `start`, `stop` and, at the end, `found`: what it has to tell about the files
of the package under test (WHENCE_WATCHED), in a form that two runs can be compared by.
"""

import json
import os
import sys
import sysconfig
import threading
import warnings
from collections import Counter

SITE = sysconfig.get_path("purelib") + "/"
WATCHED = tuple(f"{SITE}{name}/" for name in os.environ["WHENCE_WATCHED"].split())


class Whence:
    def __init__(self, folder):
        self._folder = folder
        self._found = []

    def start(self):
        import whence

        path = self._folder / f"{len(self._found)}.whence"
        options = json.loads(os.environ.get("WHENCE_OPTIONS", '{"calls": true}'))
        self._recorder = whence.record(path, **options).start()

    def stop(self):
        recorder = self._recorder
        state = recorder.state
        recorder.stop()
        self._found.append(
            {
                "path": str(recorder.path),
                "state": state,  # before it stopped
                "reason": recorder.reason,
                "recorded": recorder.recorded,
                "dropped": recorder.dropped,
            }
        )

    def found(self):
        return self._found


class Coverage:
    """Lines that were executed, and complaints; COVERAGE_CORE says how it finds out."""

    def __init__(self, _folder):
        import coverage

        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{each}*" for each in WATCHED]
        )

    def start(self):
        self._coverage.start()
        self._core = self._coverage._collector.tracer_name()

    def stop(self):
        with warnings.catch_warnings(record=True) as self._complaints:
            warnings.simplefilter("always")
            self._coverage.stop()
            self._data = self._coverage.get_data()

    def found(self):
        data = self._data
        lines = {name: sorted(data.lines(name)) for name in data.measured_files()}
        complaints = [str(each.message) for each in self._complaints]
        return {"core": self._core, "complaints": complaints, **lines}


class Debugger:
    """A trace function in Python that counts the lines of each file."""

    def __init__(self, _folder):
        self._lines = Counter()

    def _trace(self, frame, event, _argument):
        name = frame.f_code.co_filename
        if not name.startswith(WATCHED):
            return None
        if event == "line":
            self._lines[f"{name}:{frame.f_lineno}"] += 1
        return self._trace

    def start(self):
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def stop(self):
        sys.settrace(None)
        threading.settrace(None)

    def found(self):
        return dict(self._lines)


class Profile:
    """cProfile: how often each function was called."""

    def __init__(self, _folder):
        import cProfile

        self._profile = cProfile.Profile()

    def start(self):
        self._profile.enable()

    def stop(self):
        self._profile.disable()

    def found(self):
        calls = Counter()
        for entry in self._profile.getstats():
            code = entry.code  # a text for functions in C
            if not isinstance(code, str) and code.co_filename.startswith(WATCHED):
                place = f"{code.co_filename}:{code.co_firstlineno}"
                calls[f"{place} {code.co_qualname}"] += entry.callcount
        return dict(calls)


class Hook:
    """Another PEP 523 eval-frame function: what it was asked to evaluate."""

    def __init__(self, _folder):
        import eval_hook

        self._hook = eval_hook

    def start(self):
        self._hook.install(SITE)

    def stop(self):
        self._hook.remove()

    def found(self):
        counted = self._hook.counted().items()
        return {name: count for name, count in counted if name.startswith(WATCHED)}


class Wreck:
    """What a recorder must not do, to see that it would be noticed."""

    def __init__(self, _folder):
        self._tests = 0

    def start(self):
        sys.settrace(None)
        sys.setprofile(None)

    def stop(self):
        pass

    def spoil(self, _item):
        self._tests += 1
        if self._tests == 5:
            message = "spoiled"
            raise RuntimeError(message)

    def found(self):
        return {}


TOOLS = {
    "whence": Whence,
    "coverage": Coverage,
    "debugger": Debugger,
    "profile": Profile,
    "hook": Hook,
    "wreck": Wreck,
}
