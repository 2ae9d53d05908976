"""Programs with children: one clock, on which a child begins after it was started."""

import re
import subprocess
import sys

import pytest

import whence
from harness import merging, runner
from harness.beside_python import environment

PROGRAM = """
import multiprocessing, os, subprocess, sys, whence

def leaf():
    return sum(range(100))

def child():
    with whence.span("child"):
        leaf()

def fork():
    with whence.span("start"):
        pid = os.fork()
        if pid == 0:
            child()
            sys.exit()
        os.waitpid(pid, 0)

def run_process(method):
    with whence.span("start"):
        process = multiprocessing.get_context(method).Process(target=child)
        process.start()
        process.join()
    assert process.exitcode == 0

def run_subprocess():
    with whence.span("start"):
        code = "import whence, program; program.child()"
        subprocess.run([sys.executable, "-c", code], check=True)

if __name__ == "__main__":
    with whence.record("app.whence", follow=True):
        leaf()
        eval(sys.argv[1])
"""
STARTS = ["fork()", "run_process('fork')", "run_process('spawn')", "run_subprocess()"]


@pytest.mark.parametrize("start", STARTS)
def test_a_child_begins_within_the_span_that_started_it(start, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-X", "faulthandler", "program.py", start]
    outcome = runner.run_command(
        command, timeout=60, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path
    )
    assert (outcome.status, outcome.err) == (0, "")
    files = sorted(tmp_path.glob("*.whence"))
    with merging.merge(tmp_path / "all", *files) as merged:
        parent, *children = merged.processes
        assert parent.start == 0
        (begun,) = merged.slice(processes=[parent.id]).spans
        ours = [c for c in children if list(merged.slice(processes=[c.id]).spans)]
        (child,) = ours
        (inside,) = merged.slice(processes=[child.id]).spans
        assert (begun.name, inside.name) == ("start", "child")
        end = begun.start + begun.duration
        assert begun.start < child.start <= inside.start
        assert inside.start + inside.duration < end
        leaves = [c for c in merged.calls().read() if c.function == "leaf"]
        of = {thread.id: thread.process for thread in merged.threads}
        assert [of[call.thread] for call in leaves] == [parent.id, child.id]
        assert inside.start <= leaves[1].start < end
        (leaf,) = [f for f in merged.functions if f.name == "leaf"]
        assert leaf.calls == 2


@pytest.mark.parametrize("children", [1, 12])
@pytest.mark.parametrize("options", [["-o", "a b/app.whence"], []])
def test_a_run_says_how_to_merge(children, options, tmp_path):
    (tmp_path / "a b").mkdir()
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\n"
        f"for _ in range({children}): subprocess.run([sys.executable, '-c', ''])\n"
    )
    whence_ = [sys.executable, "-m", "whence"]
    command = [*whence_, "run", "--follow", *options, "program.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (line,) = re.findall(r"^    (whence merge .*)$", done.stderr, re.MULTILINE)
    assert len(line) < 400 or options
    script = f'whence() {{ "{sys.executable}" -m whence "$@"; }}\n{line}\n'
    merged = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert (merged.returncode, merged.stderr) == (0, "")
    (out,) = tmp_path.rglob("*.merged.whence")
    with whence.open(out) as recording:
        assert len(recording.processes) == 1 + children
        assert recording.processes[0].program == "program.py"
