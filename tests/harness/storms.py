"""Building and running tests/native/storm.cpp, plainly and with a sanitizer."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from conftest import NATIVE, TESTS, compile_objects

# As in CMakeLists.txt, WHENCE_SANITIZE.
SANITIZE = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


class Storm:
    """A built storm, and how to let it loose."""

    def __init__(self, folder, flags):
        self.program = folder / "storm"
        self.libraries = [folder / "visited1.so", folder / "visited2.so"]
        self.env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        common = ["c++", "-std=c++20", "-g", "-Wall", "-Wextra", "-Werror"]
        common += [f"-I{NATIVE}", f"-I{TESTS / 'native'}"]
        layers = sorted([*NATIVE.glob("unwind/*.cpp"), *NATIVE.glob("base/*.cpp")])
        native = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"]
        objects = compile_objects(layers, [f"-I{NATIVE}", *native, *flags])
        parts = sorted((TESTS / "native" / "storm").glob("*.cpp"))
        parts = [p for p in parts if p.stem != "visited"]
        parts.append(TESTS / "native" / "storm.cpp")

        def compile_part(part):
            target = folder / f"{part.stem}.o"
            command = [*common, *flags, "-c", str(part), "-o", str(target)]
            subprocess.run(command, check=True, env=self.env)
            return str(target)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = list(pool.map(compile_part, parts))
        command = [*common, *flags, *made, *objects, "-pthread", "-ldl", "-Wl,-z,lazy"]
        subprocess.run([*command, "-o", str(self.program)], check=True, env=self.env)
        for i, library in enumerate(self.libraries):
            command = [*common, "-O2", "-fPIC", "-shared", f"-DVARIANT={i + 1}"]
            command += ["-Wl,-z,lazy", str(TESTS / "native" / "storm" / "visited.cpp")]
            subprocess.run([*command, "-o", str(library)], check=True, env=self.env)

    def run(self, captures, seed, *, without=(), under=(), env=None):
        """Return what it has counted; it must end well."""
        command = [*under, self.program, captures, seed, *self.libraries, *without]
        done = subprocess.run(
            list(map(str, command)),
            capture_output=True,
            text=True,
            timeout=1800,
            env={**self.env, **(env or {})},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        counts = {}
        for line in done.stdout.splitlines():
            name, _, number = line.rpartition(": ")
            if number.isdigit():
                counts[name] = int(number)
        print(done.stdout)
        assert counts["captures"] >= captures
        return counts
