// recorder_functions.cpp: see recorder_functions.h; src/whence/_core.pyi says what each does.
#define PY_SSIZE_T_CLEAN
#include "module/recorder_functions.h"

#include <errno.h>

#include "base/system.h"
#include "cpython/ref.h"
#include "probes/name.h"
#include "session/recorder.h"
#include "store/store.h"

namespace whence::module {
namespace {

using cpython::Ref;

PyObject* raise_os_error(int error, PyObject* path) noexcept {
  errno = error;
  return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
}

PyObject* start_recording(PyObject*, PyObject* args) {
  PyObject* path;
  int overwrite;
  unsigned chunk_size;
  unsigned long long max_size, keep;
  if (!PyArg_ParseTuple(args, "SpIKK", &path, &overwrite, &chunk_size, &max_size, &keep)) {
    return nullptr;
  }
  store::Options options;
  options.path = PyBytes_AS_STRING(path);
  options.overwrite = overwrite != 0;
  options.chunk_size = chunk_size;
  options.max_size = max_size;
  options.keep = keep;
  const int error = session::start(options);
  if (error != 0 && session::is_users_error(error)) return raise_os_error(error, path);
  return PyLong_FromLong(error);
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

PyObject* dump_recording(PyObject*, PyObject* args) {
  PyObject* path;
  int overwrite;
  if (!PyArg_ParseTuple(args, "Sp", &path, &overwrite)) return nullptr;
  int error;
  Py_BEGIN_ALLOW_THREADS error = session::dump(PyBytes_AS_STRING(path), overwrite != 0);
  Py_END_ALLOW_THREADS if (error != 0) return raise_os_error(error, path);
  Py_RETURN_NONE;
}

PyObject* recording_status(PyObject*, PyObject*) {
  const store::Status status = store::store().status();
  constexpr const char* kStates[] = {"idle", "on", "ended"};
  Ref<> dropped(PyDict_New());
  for (std::size_t i = 0; dropped && i < format::kReasons; ++i) {
    if (status.dropped[i] == 0) continue;
    const Ref<> count(PyLong_FromUnsignedLongLong(status.dropped[i]));
    const char* name = format::reason_name(static_cast<format::Reason>(i));
    if (!count || PyDict_SetItemString(dropped.get(), name, count.get()) < 0) return nullptr;
  }
  if (!dropped) return nullptr;
  const bool ended = status.reason != format::Reason::none;
  return Py_BuildValue("{ss sz si sK sN sK sK}", "state",
                       kStates[static_cast<std::size_t>(status.state)], "reason",
                       ended ? format::reason_name(status.reason) : nullptr, "error", status.error,
                       "recorded", status.recorded, "dropped", dropped.release(), "names_lost",
                       status.names_lost, "bytes", status.bytes);
}

PyObject* name_thread(PyObject*, PyObject* args) {
  unsigned os_id;
  PyObject* name;
  if (!PyArg_ParseTuple(args, "IU", &os_id, &name)) return nullptr;
  store::store().name_thread(os_id, probes::name_of(name));
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef recorder_functions[] = {
    {"start_recording", start_recording, METH_VARARGS,
     "start_recording($module, path, overwrite, chunk_size, max_size, keep, /)\n--\n\n"},
    {"tell", tell, METH_VARARGS, "tell($module, key, value, /)\n--\n\n"},
    {"stop_recording", stop_recording, METH_NOARGS, "stop_recording($module, /)\n--\n\n"},
    {"dump_recording", dump_recording, METH_VARARGS,
     "dump_recording($module, path, overwrite, /)\n--\n\n"},
    {"recording_status", recording_status, METH_NOARGS, "recording_status($module, /)\n--\n\n"},
    {"name_thread", name_thread, METH_VARARGS, "name_thread($module, os_id, name, /)\n--\n\n"},
    {},
};

PyObject* make_system_capsule() noexcept {
  return PyCapsule_New(&base::system, "whence._core._system", nullptr);
}

}  // namespace whence::module
