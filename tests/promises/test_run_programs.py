"""Programs as people have them do the same under whence run, and are recorded."""

import concurrent.futures
import importlib.util
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

import whence
from harness.beside_python import environment
from harness.beside_python import whence as command

SERVER = """
    import http.server, json, sys, threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.strip("/")
            if name == "missing":
                return self.send_error(404, "nothing of that name")
            if name == "fails":
                raise RuntimeError(name)
            self.answer({"name": name, "squares": squares(len(name))})

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(json.loads(body)[::-1])

        def answer(self, value):
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    def squares(count):
        return [n * n for n in range(count)]

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request, address):
            sys.stdout.write(f"{sys.exc_info()[1]}\\n")

    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
"""


def ask(port, number):
    """Send one of several requests; return the answer, or how it failed."""
    address = f"http://127.0.0.1:{port}/"
    requests = [
        address + "a" * (number % 50),
        urllib.request.Request(address, json.dumps([number, "ü"]).encode()),
        address + "missing",
        address + "fails",
    ]
    try:
        with urllib.request.urlopen(requests[number % 4], timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.reason
    except OSError as error:
        return type(error).__name__


def serve(how, folder, number):
    """Start the server, ask it a lot from eight threads, end it by a signal."""
    with subprocess.Popen(
        [*map(str, how), "server.py"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        port = int(server.stdout.readline())
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = [*pool.map(lambda n: ask(port, n), range(400))]
        server.send_signal(number)
        out, err = server.communicate(timeout=60)
    return answers, server.returncode, sorted(out.splitlines()), err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_under_load_until_it_is_ended(beside, number):
    beside.write("server.py", SERVER)
    expected = serve([sys.executable], beside.folder, number)
    run = command("run", "-q", "-o", beside.recording)
    answers, status, out, err = serve(run, beside.folder, number)
    assert (answers, status, out) == expected[:3]
    assert status == -number
    assert err.splitlines()[-1:] == expected[3].splitlines()[-1:]
    with whence.open(beside.recording) as recording:
        assert recording.info.closed == (number == signal.SIGINT)
        calls = {}
        for call in recording.calls().read():
            calls[call.function] = calls.get(call.function, 0) + call.count
        losses = recording.losses
    assert losses.produced == losses.recorded
    assert calls["squares"] == 100
    assert calls["Handler.do_GET"] == 300
    assert calls["Handler.do_POST"] == 100
    verified = subprocess.run(command("verify", beside.recording), capture_output=True)
    assert verified.returncode == 0


POOL = """
    import multiprocessing, os, sys

    def square(n):
        return n * n, os.getpid()

    if __name__ == "__main__":
        multiprocessing.set_start_method(sys.argv[1])
        with multiprocessing.Pool(3) as pool:
            results = pool.map(square, range(60), chunksize=5)
            pool.close()
            pool.join()
        print([value for value, _ in results])
        print(*sorted({pid for _, pid in results}), file=open("pids", "w"))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_whose_processes_are_followed(beside, method):
    beside.write("pool.py", POOL)
    beside.same("pool.py", method, options=["--follow"])
    pids = {int(pid) for pid in (beside.folder / "pids").read_text().split()}
    found, squares = {}, 0
    for path in beside.recording.parent.glob("run*.whence"):
        with whence.open(path) as recording:
            pid = recording.info.pid
            calls = [call.function for call in recording.calls().read()]
        assert pid not in found
        found[pid] = path.name
        squares += calls.count("square")
        assert path.name in ("run.whence", f"run-{pid}.whence")
    assert squares == 60
    assert pids <= set(found)
    assert "run.whence" in found.values()
    if method == "fork":
        assert len(found) == 1 + 3
    else:  # multiprocessing has helpers of its own
        assert len(found) >= 1 + 3


CLICK = """
    import click

    @click.group()
    @click.option("--loud/--quiet")
    @click.pass_context
    def cli(context, loud):
        '''A small application.'''
        context.obj = loud

    @cli.command()
    @click.option("--name", prompt="Your name")
    @click.option("--count", prompt=True, type=click.IntRange(1, 3))
    @click.pass_obj
    def greet(loud, name, count):
        '''Greet somebody.'''
        for _ in range(count):
            click.echo(click.style(f"Hello, {name}!", fg="green" if loud else None))

    @cli.command()
    def drop():
        '''Drop everything.'''
        click.confirm("Are you sure?", abort=True)
        password = click.prompt("Password", default="x", hide_input=False)
        raise click.ClickException(f"cannot drop with {password}")

    @cli.command()
    @click.argument("code", type=int)
    @click.pass_context
    def leave(context, code):
        context.exit(code)

    if __name__ == "__main__":
        cli(prog_name="app")
"""


@pytest.mark.skipif(not importlib.util.find_spec("click"), reason="needs click")
@pytest.mark.parametrize(
    ("arguments", "stdin", "status"),
    [
        (["--help"], b"", 0),
        (["greet", "--help"], b"", 0),
        (["greet"], "Zoë\n2\n".encode(), 0),
        (["--loud", "greet", "--name", "x"], b"many\n7\n1\n", 0),
        (["greet"], b"", 1),
        (["drop"], b"n\n", 1),
        (["drop"], b"y\nsecret\n", 1),
        (["leave", "42"], b"", 42),
        (["leave", "x"], b"", 2),
        (["missing"], b"", 2),
        ([], b"", None),
    ],
)
def test_an_application_of_click(beside, arguments, stdin, status):
    beside.write("app.py", CLICK)
    for how in (["app.py"], ["-m", "app"]):
        done = beside.same(*how, *arguments, stdin=stdin)
        assert status is None or done.status == status
    with whence.open(beside.recording) as recording:
        assert recording.info.closed
        functions = {call.function for call in recording.calls().read()}
    assert "BaseCommand.main" in functions or "Command.main" in functions
