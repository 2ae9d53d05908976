// self_test.cpp: see self_test.h.
//
// A small program calls probe() in the situations in which layouts and rules have differed between
// versions. Each call walks the frames twice, by the layout and by the public API, and compares
// code objects and offsets.
#include "cpython/self_test.h"

#include <utility>

#include "base/safe_copy.h"
#include "cpython/frames.h"
#include "cpython/frames_public.h"
#include "cpython/ref.h"
#include "cpython/thread.h"

namespace whence::cpython {
namespace {

constexpr char kProgram[] = R"(
def plain(depth):
    return plain(depth - 1) if depth else probe()

class Made:
    def __init__(self, look):
        self.seen = probe() if look else None

def made(look):
    return Made(look)

def numbers():
    yield probe()

def thrown():
    try:
        yield
    except KeyError:
        yield probe()

def delegating():
    yield from thrown()

plain(4)
for i in range(64):
    made(i >= 62)
list(numbers())
g = delegating()
next(g)
g.throw(KeyError())
g.close()
)";
constexpr int kExpectedProbes = 5;
constexpr int kFrames = 12;     // compared at each probe: the program's own and a few below
constexpr int kMostSteps = 64;  // of the raw walk, inner frames included

struct Seen {
  const PyCodeObject* code;
  std::int32_t offset;
  bool operator==(const Seen&) const = default;
};

struct Walk {
  Seen frames[kFrames];
  int count = 0;
  bool add(Seen seen) noexcept {
    frames[count++] = seen;
    return count < kFrames;
  }
};

struct Test {
  const FrameLayout& layout;
  int probes = 0;
  const char* failure = nullptr;
};

// A layout that is wrong may lead anywhere.
template <class T>
[[nodiscard]] bool read_safely(std::uintptr_t address, T& value) noexcept {
  return base::safe_copy(address, &value, sizeof value);
}

// A step of the walk by layout, from a copy of the frame: nothing is dereferenced here.
struct RawFrame {
  std::uintptr_t executable, previous, instruction;
  std::uint8_t owner;
};

bool read_frame(const Test& test, std::uintptr_t at, RawFrame& frame) noexcept {
  const FrameLayout& layout = test.layout;
  return read_safely(at + layout.executable, frame.executable) &&
         read_safely(at + layout.previous, frame.previous) &&
         read_safely(at + layout.instruction, frame.instruction) &&
         read_safely(at + layout.owner, frame.owner);
}

// Who keeps a running frame follows from its code, which is one by now. Some versions would get by
// without the owner, so a wrong offset for it must be found here.
std::uint8_t expected_owner(const FrameLayout& layout, const PyCodeObject* code) noexcept {
  constexpr int kSuspends = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  return (code->co_flags & kSuspends) != 0 ? layout.generator : layout.thread;
}

// Where call_marks.h would write, for a frame that has called a Python function: within its stack;
// or -1, if somebody's hook has made the call. The first of its places is a number there.
bool has_places(const Test& test, std::uintptr_t frame, const PyCodeObject* code) noexcept {
  const FrameLayout& layout = test.layout;
  if (layout.stack_top == 0) return true;
  int top = 0;
  std::uintptr_t local = 0;
  PyTypeObject* type = nullptr;
  if (!read_safely(frame + layout.stack_top, top) || !read_safely(frame + layout.places, local) ||
      !read_safely(local + offsetof(PyObject, ob_type), type)) {
    return false;
  }
  const int locals = code->co_nlocalsplus;
  const bool fits = top >= locals && top < locals + code->co_stacksize;
  return type == &PyLong_Type && (fits || top == -1);
}

// The first function of the program calls itself, and nothing else does that there.
bool calls_itself(const PyCodeObject* code, const PyCodeObject* inner) noexcept {
  return code == inner && PyUnicode_CompareWithASCIIString(code->co_name, "plain") == 0;
}

const char* walk_raw(const Test& test, PyThreadState* state, Walk& walk) noexcept {
  auto at = reinterpret_cast<std::uintptr_t>(current_frame(state));
  const PyCodeObject* inner = nullptr;
  for (int step = 0; at != 0 && step < kMostSteps; ++step) {
    RawFrame frame;
    if (!read_frame(test, at, frame)) return "a frame could not be read";
    const std::uintptr_t address = std::exchange(at, frame.previous);
    if (frame.owner >= test.layout.first_inner) continue;
    const std::uintptr_t code = frame.executable & ~test.layout.tag_bits;
    PyTypeObject* type = nullptr;
    int first_traceable = 0;
    if (!read_safely(code + offsetof(PyObject, ob_type), type) || type != &PyCode_Type ||
        !read_safely(code + offsetof(PyCodeObject, _co_firsttraceable), first_traceable)) {
      return "a frame has no code object where it should";
    }
    const auto units = static_cast<std::intptr_t>(frame.instruction - code -
                                                  offsetof(PyCodeObject, co_code_adaptive)) /
                       kCodeUnit;
    if (frame.owner != test.layout.generator && units < first_traceable) continue;
    const auto* object = reinterpret_cast<const PyCodeObject*>(code);
    if (frame.owner != expected_owner(test.layout, object)) return "a frame has an unlikely owner";
    if (calls_itself(object, inner) && !has_places(test, address, object)) {
      return "a frame has no stack where it should";
    }
    inner = object;
    if (!walk.add({object, offset_in(object, frame.instruction)})) break;
  }
  return nullptr;
}

const char* compare_walks(const Test& test) noexcept {
  PyThreadState* state = calling_state();
  Walk expected;
  const bool whole = walk_public(
      state, [&](PublicFrame frame) { return expected.add({frame.code, frame.offset}); });
  if (!whole) return "memory ran out";
  Walk walked;
  if (const char* failure = walk_raw(test, state, walked)) return failure;
  if (walked.count != expected.count) return "the number of frames differs";
  for (int i = 0; i < expected.count; ++i) {
    if (walked.frames[i] != expected.frames[i]) return "a frame differs";
  }
  return nullptr;
}

PyObject* probe(PyObject* self, PyObject*) {
  auto* test = static_cast<Test*>(PyCapsule_GetPointer(self, nullptr));
  ++test->probes;
  if (test->failure == nullptr) test->failure = compare_walks(*test);
  Py_RETURN_NONE;
}

PyMethodDef probe_method = {"probe", probe, METH_NOARGS, nullptr};

// Keeps sys.settrace and sys.setprofile functions from seeing our program.
struct [[nodiscard]] TracingAside {
  PyThreadState* const state = calling_state();
  TracingAside() noexcept { PyThreadState_EnterTracing(state); }
  ~TracingAside() { PyThreadState_LeaveTracing(state); }
  TracingAside(const TracingAside&) = delete;
  TracingAside& operator=(const TracingAside&) = delete;
};

bool run_program(Test& test) noexcept {
  const Ref<> code(Py_CompileString(kProgram, "<whence self-test>", Py_file_input));
  const Ref<> self(PyCapsule_New(&test, nullptr, nullptr));
  const Ref<> function(self ? PyCFunction_New(&probe_method, self.get()) : nullptr);
  const Ref<> globals(PyDict_New());
  if (!code || !function || !globals) return false;
  if (PyDict_SetItemString(globals.get(), "probe", function.get()) < 0 ||
      PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins()) < 0 ||
      PyDict_SetItemString(globals.get(), "__name__", Py_None) < 0) {
    return false;
  }
  const TracingAside aside;
  return static_cast<bool>(Ref<>(PyEval_EvalCode(code.get(), globals.get(), globals.get())));
}

}  // namespace

const char* self_test(const FrameLayout& layout) noexcept {
  if (!kLayoutKnown) return "this interpreter's frames are not described";
  Test test{layout};
  if (!run_program(test)) {
    // An interrupt or an exit is somebody's word to the program: it goes on to whoever imports us.
    if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
    return "the self-test's program failed";
  }
  if (test.failure != nullptr) return test.failure;
  return test.probes == kExpectedProbes ? nullptr
                                        : "the self-test's program did not run to its end";
}

}  // namespace whence::cpython
