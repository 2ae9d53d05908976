"""Child processes: clean without follow=True, and with it a file of their own each."""

import json
import os
import sys
from pathlib import Path

import pytest

import whence
from harness import runner, traced

HOOKS = """
import gc, os, sys, threading, whence

def hooks():
    '''Everything of the interpreter's that a recording puts something in.'''
    monitoring = getattr(sys, "monitoring", None)
    tools = [monitoring.get_tool(n) for n in range(6)] if monitoring else evaluation()
    thread = threading.Thread.__dict__["_bootstrap"]
    environment = os.environ.get("WHENCE_FOLLOW")
    return tools, sys.getprofile(), sys.gettrace(), thread, gc.callbacks[:], environment

def evaluation():
    '''The function that evaluates frames, of 3.11.'''
    import ctypes
    get = ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    main = ctypes.pythonapi.PyInterpreterState_Main
    main.restype = ctypes.c_void_p
    return get(main())

def leaf():
    pass
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.whence"


def run(code, path, *args):
    outcome = runner.run(HOOKS + code, str(path), *args, cwd=str(path.parent))
    assert (outcome.status, outcome.err) == (0, "")
    return outcome.out


def families(path):
    """Return the recordings of a folder, by the process that each is of."""
    found = {}
    for file in sorted(path.parent.glob("*.whence")):
        with whence.open(file) as recording:
            info = recording.info
        assert info.closed, file
        found[info.pid] = (file, traced.read(file))
    return found


@pytest.mark.parametrize("options", ["", "c_calls=True, exceptions=True"])
def test_without_follow_a_forked_child_has_no_hooks(path, options):
    out = run(
        f"""
before = hooks()
with whence.record(sys.argv[1], {options}):
    during = hooks()
    child = os.fork()
    if child == 0:
        leaf()
        os._exit(0 if hooks() == before else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert hooks() == during != before
    leaf()
assert hooks() == before
print(os.getpid())
""",
        path,
    )
    ((pid, (_, found)),) = families(path).items()
    assert pid == int(out)
    assert found.count("leaf") == 1


def test_without_follow_started_programs_know_nothing_of_it(path):
    run(
        """
import subprocess
with whence.record(sys.argv[1]):
    assert "WHENCE_FOLLOW" not in os.environ
    code = "import sys; print('whence' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\\n", "")
""",
        path,
    )
    assert len(families(path)) == 1


def test_a_followed_fork_has_a_file_beside_its_parents(path):
    out = run(
        """
with whence.record(sys.argv[1], follow=True):
    leaf()
    child = os.fork()
    if child == 0:
        leaf()
        leaf()
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
print(os.getpid(), child)
""",
        path,
    )
    parent, child = map(int, out.split())
    found = families(path)
    assert set(found) == {parent, child}
    assert found[child][0] == path.with_name(f"a-{child}.whence")
    assert (found[parent][1].count("leaf"), found[child][1].count("leaf")) == (1, 2)
    assert [t.os_id for t in found[child][1].threads] == [child]


def test_a_followed_child_that_ends_hard_has_its_file_all_the_same(path):
    out = run(
        """
with whence.record(sys.argv[1], follow=True):
    child = os.fork()
    if child == 0:
        leaf()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(child)
""",
        path,
    )
    file = path.with_name(f"a-{int(out)}.whence")
    with whence.open(file) as recording:
        assert not recording.info.closed
    assert traced.read(file).count("leaf") == 1


SCRIPT = """
import multiprocessing, os, sys
import whence

def leaf():
    pass

def work(depth, results):
    leaf()
    results.put((depth, os.getpid(), os.getppid()))
    if depth:
        start(depth - 1, results)

def start(depth, results):
    context = multiprocessing.get_context(sys.argv[2])
    child = context.Process(target=work, args=[depth, results])
    child.start()
    child.join()
    assert child.exitcode == 0

if __name__ == "__main__":
    with whence.record(sys.argv[1], follow=True):
        results = multiprocessing.get_context(sys.argv[2]).Queue()
        start(1, results)
        print(results.get()[1], results.get()[1])
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing_and_theirs(path, method):
    script = path.with_name("script.py")
    script.write_text(SCRIPT)
    code = "import runpy; runpy.run_path('script.py', run_name='__main__')"
    if method != "fork":  # a child imports the program by its name
        code = f"""
import subprocess
args = [sys.executable, {str(script)!r}, sys.argv[1], {method!r}]
sys.exit(subprocess.run(args).returncode)
"""
    out = run(code, path, method)
    found = families(path)
    pids = list(map(int, out.split()))
    assert set(pids) <= set(found)
    for pid in pids:
        file, calls = found[pid]
        assert file == path.with_name(f"a-{pid}.whence")
        assert calls.count("leaf") == 1
        # A forked child has the frames of its parent, too.
        assert [c.entered for c in calls.of("work")].count("call") == 1


def test_a_pool_of_processes(path):
    out = run(
        """
from concurrent.futures import ProcessPoolExecutor
import multiprocessing
with whence.record(sys.argv[1], follow=True):
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        list(pool.map(abs, range(10)))
        print(*pool._processes)
""",
        path,
    )
    assert set(map(int, out.split())) < set(families(path))


def test_programs_started_by_subprocess_and_theirs(path):
    inner = "def leaf(): pass\nleaf(); import os; print(os.getpid())"
    outer = f"""
import os, subprocess, sys
def leaf(): pass
leaf()
print(os.getpid(), flush=True)
subprocess.run([sys.executable, "-c", {inner!r}], check=True)
"""
    out = run(
        f"""
import subprocess
before = os.environ.copy()
with whence.record(sys.argv[1], follow=True):
    subprocess.run([sys.executable, "-c", {outer!r}], check=True)
assert os.environ == before
""",
        path,
    )
    found = families(path)
    pids = list(map(int, out.split()))
    assert len(pids) == 2
    assert set(pids) < set(found)
    for pid in pids:
        file, calls = found[pid]
        assert calls.count("leaf") == 1
        assert file == path.with_name(f"a-{pid}.whence")


def test_options_are_those_of_the_parent(path):
    code = "def leaf(): len('')\nfor _ in range(9): leaf()"
    run(
        f"""
import subprocess
wanted = dict(include=["leaf"], c_calls=True, gc=False, pack=False, chunk_size=4096)
with whence.record(sys.argv[1], follow=True, **wanted):
    subprocess.run([sys.executable, "-c", {code!r}], check=True)
""",
        path,
    )
    (child,) = [file for file, _ in families(path).values() if file != path]
    with whence.open(child) as recording:
        info = recording.info
    assert (info.chunk_size, info.packed) == (4096, False)
    functions = {c.function for c in traced.read(child).calls}
    assert functions == {"leaf", "builtins.len"}


@pytest.mark.parametrize("flag", ["-E", "-I", "-S"])
def test_children_that_do_not_look_are_not_followed_and_not_broken(path, flag):
    out = run(
        f"""
import subprocess
with whence.record(sys.argv[1], follow=True):
    code = "import sys; print('whence' in sys.modules)"
    done = subprocess.run(
        [sys.executable, {flag!r}, "-c", code], capture_output=True, text=True
    )
print(done.returncode, done.stdout.strip(), done.stderr)
""",
        path,
    )
    returncode, imported, *err = out.split()
    assert (returncode, err) == ("0", [])
    assert flag != "-S" or imported == "False"
    assert len(families(path)) == 1


GARBAGE = [
    "",
    "1",
    "garbage",
    "{",
    "[]",
    "null",
    '"text"',
    "{}",
    '{"beside": null}',
    '{"beside": 5}',
    '{"beside": "/nowhere/at/all"}',
    '{"beside": "a", "unknown": 1}',
    '{"beside": "a", "keep": "soon"}',
    '{"beside": "a\\u0000b"}',
    '{"beside": "a", "include": 5}',
    '{"beside": "a", "max_depth": {}}',
    "\udcff\udc80",
    "[" * 100_000,
]


@pytest.mark.parametrize("text", GARBAGE, ids=lambda text: repr(text)[:30])
def test_garbage_in_the_environment_does_nothing(tmp_path, text):
    outcome = runner.run(
        "print('fine')", env={"WHENCE_FOLLOW": text}, cwd=str(tmp_path)
    )
    assert outcome == runner.Outcome(0, "fine\n", "")
    leftovers = [p.name for p in Path(tmp_path).iterdir() if p.name != "None-"]
    assert not [name for name in leftovers if not name.endswith(".whence")]


def test_the_environment_is_as_it_was_afterwards(path, monkeypatch):
    monkeypatch.delenv("WHENCE_FOLLOW", raising=False)
    before = dict(os.environ)
    with whence.record(path, follow=True):
        told = json.loads(os.environ["WHENCE_FOLLOW"])
        assert told["beside"] == str(path.with_suffix(""))
        assert {k: v for k, v in os.environ.items() if k != "WHENCE_FOLLOW"} == before
    assert dict(os.environ) == before
    with whence.record(path, follow=True, overwrite=True):
        os.environ["WHENCE_FOLLOW"] = "somebody else's"
    assert os.environ.pop("WHENCE_FOLLOW") == "somebody else's"


def test_a_fork_while_a_schedule_waits_and_while_it_records(path):
    out = run(
        """
schedule = whence.schedule(wait=1, warmup=1, active=1, repeat=1)
children = []
with whence.record(sys.argv[1], follow=True, schedule=schedule) as recorder:
    for _ in range(4):
        child = os.fork()
        if child == 0:
            leaf()
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
        children.append(child)
        recorder.step()
print(*children)
""",
        path,
    )
    _, _, recorded, _ = map(int, out.split())
    found = families(path)
    assert found[recorded][1].count("leaf") == 1


def test_threads_that_run_while_a_followed_process_forks(path):
    """The child has none of them, and none of their events."""
    out = run(
        """
import warnings
warnings.simplefilter("ignore")
done = threading.Event()
def busy():
    while not done.is_set():
        leaf()
threads = [threading.Thread(target=busy, name="busy") for _ in range(4)]
children = []
with whence.record(sys.argv[1], follow=True, max_size="4MB"):
    for thread in threads:
        thread.start()
    for _ in range(10):
        child = os.fork()
        if child == 0:
            leaf()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        children.append(child)
    done.set()
    for thread in threads:
        thread.join()
print(*children)
""",
        path,
    )
    for child in out.split():
        found = traced.read(path.with_name(f"a-{child}.whence"))
        assert found.count("leaf") == 1
        assert [t.name for t in found.threads] == ["MainThread"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there is no such hook of ours")
def test_the_hook_of_3_11_is_back_where_it_was(path):
    run(
        """
before = evaluation()
with whence.record(sys.argv[1]):
    assert evaluation() != before
    child = os.fork()
    if child == 0:
        os._exit(evaluation() != before)
    assert os.waitpid(child, 0)[1] == 0
assert evaluation() == before
""",
        path,
    )
