// recorder_functions.cpp: see recorder_functions.h; src/whence/_core.pyi says what each does.
#define PY_SSIZE_T_CLEAN
#include "module/recorder_functions.h"

#include <errno.h>
#include <signal.h>

#include <cstring>

#include "base/clock.h"
#include "base/system.h"
#include "cpython/ref.h"
#include "module/record_objects.h"
#include "module/state.h"
#include "probes/name.h"
#include "session/recorder.h"
#include "store/store.h"

namespace whence::module {
namespace {

using cpython::Ref;

// The path as users have it.
PyObject* raise_os_error(int error, PyObject* path) noexcept {
  const Ref<> text(PyUnicode_DecodeFSDefault(PyBytes_AS_STRING(path)));
  if (!text) return nullptr;
  errno = error;
  return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, text.get());
}

bool has_no_nul(PyObject* path) noexcept {
  const char* text = PyBytes_AS_STRING(path);
  if (std::strlen(text) == static_cast<std::size_t>(PyBytes_GET_SIZE(path))) return true;
  PyErr_SetString(PyExc_ValueError, "a path must not contain a null character");
  return false;
}

PyObject* start_recording(PyObject* module, PyObject* args) {
  if (!state_of(module).is_main) {
    return PyErr_Format(PyExc_RuntimeError, "start the recording in the main interpreter");
  }
  PyObject* path;
  int overwrite;
  unsigned chunk_size;
  unsigned long long max_size, keep;
  if (!PyArg_ParseTuple(args, "SpIKK", &path, &overwrite, &chunk_size, &max_size, &keep)) {
    return nullptr;
  }
  if (!has_no_nul(path)) return nullptr;
  store::Options options;
  options.path = PyBytes_AS_STRING(path);
  options.overwrite = overwrite != 0;
  options.chunk_size = chunk_size;
  options.max_size = max_size;
  options.keep = keep;
  const int error = session::start(options);
  if (error != 0 && session::is_users_error(error)) return raise_os_error(error, path);
  return Py_BuildValue("z", error != 0 ? format::reason_name(store::reason_of(error)) : nullptr);
}

PyObject* tell(PyObject*, PyObject* args) {
  const char *key, *value;
  Py_ssize_t key_size, value_size;
  if (!PyArg_ParseTuple(args, "s#s#", &key, &key_size, &value, &value_size)) return nullptr;
  session::tell({key, static_cast<std::size_t>(key_size)},
                {value, static_cast<std::size_t>(value_size)});
  Py_RETURN_NONE;
}

PyObject* stop_recording(PyObject*, PyObject*) {
  int file;
  Py_BEGIN_ALLOW_THREADS file = session::stop();
  Py_END_ALLOW_THREADS return PyLong_FromLong(file);
}

// The errno of a dump, or 0; -1 with Python's error set for wrong arguments.
int dump(PyObject* args) {
  PyObject* path;
  int overwrite;
  if (!PyArg_ParseTuple(args, "Sp", &path, &overwrite) || !has_no_nul(path)) return -1;
  int error;
  Py_BEGIN_ALLOW_THREADS error = session::dump(PyBytes_AS_STRING(path), overwrite != 0);
  Py_END_ALLOW_THREADS return error;
}

PyObject* dump_recording(PyObject*, PyObject* args) {
  const int error = dump(args);
  if (error == -1) return nullptr;
  if (error != 0) return raise_os_error(error, PyTuple_GET_ITEM(args, 0));
  Py_RETURN_NONE;
}

PyObject* try_dump(PyObject*, PyObject* args) {
  const int error = dump(args);
  return error == -1 ? nullptr : PyLong_FromLong(error);
}

PyObject* is_recording(PyObject*, PyObject*) {
  return PyBool_FromLong(store::store().generation() != 0);
}

PyObject* recording_status(PyObject*, PyObject*) {
  const store::Status status = store::store().status();
  constexpr const char* kStates[] = {"idle", "on", "ended"};
  Ref<> dropped = counts_by_reason(status.dropped);
  if (!dropped) return nullptr;
  const bool ended = status.reason != format::Reason::none;
  return Py_BuildValue("{ss sz si sK sN sK sK si s(KK)}", "state",
                       kStates[static_cast<std::size_t>(status.state)], "reason",
                       ended ? format::reason_name(status.reason) : nullptr, "error", status.error,
                       "recorded", status.recorded, "dropped", dropped.release(), "names_lost",
                       status.names_lost, "bytes", status.bytes, "descriptor", status.descriptor,
                       "start", status.start_ticks, status.start_monotonic);
}

PyObject* has_handler(PyObject*, PyObject* arg) {
  struct sigaction action;
  const long number = PyLong_AsLong(arg);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  const bool known = sigaction(static_cast<int>(number), nullptr, &action) == 0;
  return PyBool_FromLong(known && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

PyObject* name_thread(PyObject*, PyObject* args) {
  unsigned os_id;
  PyObject* name;
  if (!PyArg_ParseTuple(args, "IU", &os_id, &name)) return nullptr;
  const std::uint32_t recording = store::store().generation();
  if (recording != 0) {
    store::store().name_thread(os_id, probes::name_of(recording, name));
  }
  Py_RETURN_NONE;
}

PyObject* read_clocks(PyObject*, PyObject*) {
  const base::ClockPair pair = base::read_clocks();
  return Py_BuildValue("KK", static_cast<unsigned long long>(pair.ticks),
                       static_cast<unsigned long long>(pair.monotonic));
}

PyObject* clock(PyObject*, PyObject*) {
  const char* name = "monotonic";
  switch (store::choose_clock()) {
    case base::ClockKind::monotonic: break;
    case base::ClockKind::tsc: name = "tsc"; break;
    case base::ClockKind::arm_counter: name = "arm_counter"; break;
  }
  return Py_BuildValue("sK", name, static_cast<unsigned long long>(base::reading_cost()));
}

}  // namespace

PyMethodDef recorder_functions[] = {
    {"start_recording", start_recording, METH_VARARGS,
     "start_recording($module, path, overwrite, chunk_size, max_size, keep, /)\n--\n\n"},
    {"tell", tell, METH_VARARGS, "tell($module, key, value, /)\n--\n\n"},
    {"stop_recording", stop_recording, METH_NOARGS, "stop_recording($module, /)\n--\n\n"},
    {"dump_recording", dump_recording, METH_VARARGS,
     "dump_recording($module, path, overwrite, /)\n--\n\n"},
    {"try_dump", try_dump, METH_VARARGS, "try_dump($module, path, overwrite, /)\n--\n\n"},
    {"is_recording", is_recording, METH_NOARGS, "is_recording($module, /)\n--\n\n"},
    {"recording_status", recording_status, METH_NOARGS, "recording_status($module, /)\n--\n\n"},
    {"read_clocks", read_clocks, METH_NOARGS, "read_clocks($module, /)\n--\n\n"},
    {"clock", clock, METH_NOARGS, "clock($module, /)\n--\n\n"},
    {"has_handler", has_handler, METH_O, "has_handler($module, signal, /)\n--\n\n"},
    {"name_thread", name_thread, METH_VARARGS, "name_thread($module, os_id, name, /)\n--\n\n"},
    {},
};

PyObject* make_system_capsule() noexcept {
  return PyCapsule_New(&base::system, "whence._core._system", nullptr);
}

}  // namespace whence::module
