"""Small programs and libraries, compiled as tests need them."""

import os
import shutil
import subprocess

import pytest

HEADER = """\
extern "C" int work(int number);
template <class T> inline __attribute__((always_inline)) T twice(T number) {
  return work(number) + number;  // line 3
}
"""
SOURCE = """\
#include "twice.h"
namespace geo {
template <class T> struct Box {
  T volume;
  __attribute__((noinline)) T grow(T by);
};
inline __attribute__((always_inline)) int middle(int number) {
  return twice(number) + 1;  // line 8
}
template <class T> T Box<T>::grow(T by) {
  volume += middle(by);  // line 11
  return volume;
}
template struct Box<int>;
__attribute__((noinline)) static int hidden(int number) {
  asm volatile("nop" : "+r"(number));
  return number;
}
}
extern "C" __attribute__((noinline)) int work(int number) {
  asm volatile("nop" : "+r"(number));
  return number;
}
extern "C" int outer(int number) {
  geo::Box<int> box{number};
  return box.grow(number) + geo::hidden(number);
}
int rusty(int) asm("_ZN4core3fmt3pad17h0123456789abcdefE");
int rusty(int number) { return number + 1; }
int main(int count, char**) { return outer(count) + rusty(count); }
"""


def run(*command, cwd):
    quiet = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run([str(part) for part in command], check=True, cwd=cwd, env=quiet)


def make(folder, name, *flags, source=SOURCE):
    """Compile and link a file in a folder; a library unless the flags say otherwise."""
    (folder / "twice.h").write_text(HEADER)
    (folder / f"{name}.cpp").write_text(source)
    kind = [] if {"-no-pie", "-pie"} & set(flags) else ["-shared", "-fPIC"]
    command = ["c++", "-std=c++20", "-O1", "-g", "-Wl,--build-id", *kind, *flags]
    run(*command, folder / f"{name}.cpp", "-o", folder / name, cwd=folder)
    return folder / name


def split(library, debug):
    """Move what debuggers need into another file; both keep the build id."""
    debug.parent.mkdir(parents=True, exist_ok=True)
    folder = library.parent
    run("objcopy", "--only-keep-debug", library, debug, cwd=folder)
    run("strip", "--strip-all", library, cwd=folder)


needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, ("c++", "objcopy", "strip"))),
    reason="needs a compiler and binutils",
)
