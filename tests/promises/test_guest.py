"""A capture is legal anywhere and leaves nothing behind."""

import gc
import sys
import threading
import weakref

import pytest

import whence


def names(stack):
    return [frame.name for frame in stack.frames]


def test_inside_a_weakref_callback():
    captured = []

    class Target:
        pass

    target = Target()
    reference = weakref.ref(target, lambda _: captured.append(whence.capture()))
    del target
    assert reference() is None
    assert names(captured[0])[:2] == ["<lambda>", "test_inside_a_weakref_callback"]


def test_inside_a_finalizer_run_by_the_collector():
    captured = []

    class Cyclic:
        def __init__(self):
            self.self = self

        def __del__(self):
            captured.append(whence.capture())

    Cyclic()
    gc.collect()
    assert names(captured[0])[:2] == [
        "__del__",
        "test_inside_a_finalizer_run_by_the_collector",
    ]


def test_inside_tp_dealloc(rude):
    report = []
    rude.Dying(report)
    ((stack, pending),) = report
    assert not pending
    assert names(stack)[0] == "test_inside_tp_dealloc"


def test_during_exception_handling():
    class Loud(Exception):
        def __init__(self):
            self.stack = whence.capture()

    def fail():
        raise Loud

    try:
        fail()
    except Loud as error:
        inside = whence.capture()
        assert sys.exc_info()[1] is error
        assert names(error.stack)[:3] == [
            *("__init__", "fail", "test_during_exception_handling"),
        ]
        assert names(inside)[0] == "test_during_exception_handling"
        with pytest.raises(Loud) as raised:
            raise
        assert raised.value is error


def test_a_resumed_generator_shows_who_resumed_it():
    def generator():
        while True:
            yield whence.capture()

    running = generator()

    def first():
        return next(running)

    def second():
        return running.send(None)

    for _ in range(3):
        assert names(first())[:2] == ["generator", "first"]
        assert names(second())[:2] == ["generator", "second"]
        assert names(next(running))[1].startswith("test_a_resumed")


def test_64_threads_at_once():
    barrier = threading.Barrier(64)
    wrong = []

    def dive(depth):
        if depth:
            return dive(depth - 1)
        return whence.capture()

    def work(depth):
        barrier.wait()
        for _ in range(200):
            got = names(dive(depth))
            if got[: depth + 2] != ["dive"] * (depth + 1) + ["work"]:
                wrong.append(got)

    threads = [threading.Thread(target=work, args=[i % 17]) for i in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_at_recursion_depth_100_000(run_python):
    out = run_python(
        """
        import sys, whence, pickle
        sys.setrecursionlimit(200_000)

        def dive(depth):
            if depth:
                return dive(depth - 1)
            full, some = whence.capture(), whence.capture(limit=3)
            return full, some, whence.capture(skip=99_990)

        for turn in range(2):
            full, some, rest = dive(100_000)
            assert full.depth == 100_002, full.depth
            assert len(full.frames) == 100_002
            assert full.frames[-1].name == "<module>"
            assert [f.name for f in some.frames] == ["dive"] * 3
            assert [f.name for f in rest.frames] == ["dive"] * 11 + ["<module>"]
            assert pickle.loads(pickle.dumps(full)) == full
            assert len(whence.to_json([full])) > 100_000
        print("done")
        """
    )
    assert out == "done\n"


def test_from_an_atexit_handler(run_python):
    out = run_python(
        """
        import atexit, whence

        kept = whence.capture()

        def leaving():
            print([f.name for f in whence.capture().frames], kept.frames[0].name)

        atexit.register(leaving)
        """
    )
    assert out == "['leaving'] <module>\n"


def test_during_interpreter_shutdown(run_python):
    out = run_python(
        """
        import os, sys, whence

        class Late:
            def __init__(self, other):
                self.other = other
            def __del__(self, capture=whence.capture, write=os.write):
                stack = capture()
                answers = stack.depth, stack == self.other, stack == stack
                write(1, f"{answers}\\n".encode())

        sys.late = Late(whence.capture())
        cycle = [Late(whence.capture())]
        cycle.append(cycle)
        module = type(sys)("module")
        module.late = Late(whence.capture())
        sys.modules["late"] = module
        """
    )
    assert out == "(1, False, True)\n" * 3


def test_after_fork(run_python):
    out = run_python(
        """
        import os, sys, threading, warnings, whence
        warnings.simplefilter("ignore")
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                whence.capture()

        threads = [threading.Thread(target=busy) for _ in range(4)]
        for thread in threads:
            thread.start()
        before = whence.capture()
        for turn in range(50):
            child = os.fork()
            if child == 0:
                def in_child():
                    return whence.capture()
                good = [f.name for f in in_child().frames] == ["in_child", "<module>"]
                good = good and before.frames[0].name == "<module>"
                os._exit(0 if good else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
        print("done")
        """
    )
    assert out == "done\n"


def test_import_is_quiet_and_starts_nothing(run_python):
    out = run_python(
        """
        import gc, os, signal, sys, threading
        before = set(os.listdir("/proc/self/fd")), threading.active_count()
        handlers = [signal.getsignal(n) for n in signal.valid_signals()]
        profile, trace = sys.getprofile(), sys.gettrace()
        modules = set(sys.modules)
        import whence
        after = set(os.listdir("/proc/self/fd")), threading.active_count()
        assert before == after, (before, after)
        assert handlers == [signal.getsignal(n) for n in signal.valid_signals()]
        assert (sys.getprofile(), sys.gettrace()) == (profile, trace)
        new = {m.split(".")[0] for m in set(sys.modules) - modules}
        print(sorted(new - set(sys.stdlib_module_names)))
        """
    )
    assert out == "['whence']\n"


def test_a_subinterpreter_says_in_one_line_what_it_cannot_do(run_python, tmp_path):
    path = str(tmp_path / "a.whence")
    out = run_python(
        f"""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import textwrap, whence
        inner = interpreters.create()
        code = '''
        import whence

        def called():
            return whence.capture().depth

        print(called(), flush=True)
        whence.mark("inner")
        try:
            whence.record({path!r}).start()
        except RuntimeError as error:
            print(error, flush=True)
        '''
        with whence.record({path!r}):
            interpreters.run_string(inner, textwrap.dedent(code))
        interpreters.destroy(inner)
        print(whence.capture().frames[0].name)
        with whence.open({path!r}) as recording:
            print(sum(record.kind == "mark" for record in recording))
            print(any(call.function == "called" for call in recording.calls().read()))
        """
    )
    assert out.splitlines() == [
        "0",
        "start the recording in the main interpreter",
        "<module>",
        "1",
        "False",
    ]


def test_code_that_another_tool_has_marked_may_die(run_python):
    """CPython tells every owner of a code slot of every death, also of empty slots."""
    out = run_python(
        """
        import ctypes, sys, whence
        api, modern = ctypes.pythonapi, sys.version_info >= (3, 12)
        prefix = "PyUnstable_" if modern else "_Py"
        request = getattr(api, prefix + "Eval_RequestCodeExtraIndex")
        request.restype, request.argtypes = ctypes.c_ssize_t, [ctypes.c_void_p]
        mark = getattr(api, prefix + "Code_SetExtra")
        mark.argtypes = [ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p]
        slot = request(None)
        for captured in (False, True):
            code = compile("1", "foreign", "exec")
            assert mark(code, slot, 1) == 0
            del code
            whence.capture()
        print(whence.statistics().codes_dead)
        """
    )
    assert out == "0\n"


def test_importing_again_goes_on_where_it_was(run_python):
    out = run_python(
        """
        import sys, whence

        def again():
            for name in [n for n in sys.modules if n.startswith("whence")]:
                del sys.modules[name]
            import whence
            return whence

        first = whence.capture
        for turn in range(300):
            newest = again()
        for function in (first, newest.capture):
            for _ in range(100):
                stack = function()
        print(newest.statistics().codes, newest.statistics().stacks < 20)
        print([frame.name for frame in newest.capture().frames])
        """
    )
    assert out == "1 True\n['<module>']\n"


def test_an_interrupt_during_import_is_not_swallowed(run_python):
    out = run_python(
        """
        import builtins

        def interrupted(*args):
            raise KeyboardInterrupt

        kept, builtins.range = range, interrupted
        try:
            import whence
        except KeyboardInterrupt:
            print("interrupted")
        builtins.range = kept
        import whence
        print(whence.statistics().walk_reason)
        """,
        env={"WHENCE_FRAMES": "fast"},
    )
    assert out == "interrupted\nNone\n"


def test_tracers_do_not_see_the_self_test(run_python):
    out = run_python(
        """
        import sys
        seen = set()
        sys.settrace(lambda frame, *_: seen.add(frame.f_code.co_filename))
        sys.setprofile(lambda frame, *_: seen.add(frame.f_code.co_filename))
        import whence
        sys.settrace(None)
        sys.setprofile(None)
        print([name for name in seen if "self-test" in name])
        """
    )
    assert out == "[]\n"


@pytest.mark.parametrize("walk", ["fast", "public"])
def test_no_garbage_is_collected_inside_a_capture(run_python, walk):
    out = run_python(
        """
        import gc, whence
        collected = []
        gc.callbacks.append(lambda *_: collected.append(inside))
        gc.set_threshold(1)
        inside = False

        def dive(depth):
            global inside
            if depth:
                return dive(depth - 1)
            inside = True
            stack = whence.capture()
            inside = False
            return stack

        assert dive(100).depth == 102
        print(any(collected), gc.isenabled())
        """,
        env={"WHENCE_FRAMES": walk},
    )
    assert out == "False True\n"
