// reader_memory.cpp: see reader_tables.h. src/whence/_core.pyi says what each method does.
#include <memory>
#include <new>

#include "module/frame_objects.h"
#include "module/memory_answers.h"
#include "module/reader_tables.h"
#include "module/reader_type.h"
#include "read/memory_failures.h"
#include "read/memory_groups.h"
#include "read/memory_history.h"
#include "read/memory_usage.h"
#include "read/totals.h"

namespace whence::module {
namespace {

using cpython::Ref;

PyObject* usage_point(const read::UsagePoint& point) {
  Ref<> levels = list_of(point.levels, [](const read::UsagePoint::Level& level) {
    return Py_BuildValue("KK", Number{level.bytes}, Number{level.count});
  });
  Ref<> pools = list_of(point.pools, [](const read::UsagePoint::PoolLevel& pool) {
    return Py_BuildValue("KKKK", Number{pool.domain}, Number{pool.level.bytes},
                         Number{pool.level.count}, Number{pool.reserved});
  });
  return Py_BuildValue("LKKNN", static_cast<long long>(point.time), Number{point.bytes},
                       Number{point.count}, levels.release(), pools.release());
}

}  // namespace

PyObject* reader_memory_peak(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  PyObject* bounds;
  read::Slice slice;
  if (reading == nullptr || !PyArg_ParseTuple(args, "O!", &PyTuple_Type, &bounds) ||
      !read_slice(bounds, slice)) {
    return nullptr;
  }
  read::PeakOfMemory peak(reading->source, reading->timeline, slice);
  if (!run(object, peak)) return nullptr;
  Ref<> answer(Py_BuildValue("KLN", Number{peak.bytes()}, static_cast<long long>(peak.time()),
                             rows(peak.groups()).release()));
  return result(std::move(answer), peak.replay());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_memory_live(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  PyObject *bounds, *from, *to, *until;
  read::Slice slice;
  read::LiveGroups::Wanted wanted;
  if (reading == nullptr ||
      !PyArg_ParseTuple(args, "O!OOO", &PyTuple_Type, &bounds, &from, &to, &until) ||
      !read_slice(bounds, slice) || !read_time(from, wanted.from) || !read_time(to, wanted.to) ||
      !read_time(until, wanted.until)) {
    return nullptr;
  }
  read::LiveGroups live(reading->source, reading->timeline, slice, wanted);
  if (!run(object, live)) return nullptr;
  return result(rows(live.groups()), live.replay());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_memory_churn(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  PyObject* bounds;
  Number within;
  read::Slice slice;
  if (reading == nullptr || !PyArg_ParseTuple(args, "O!K", &PyTuple_Type, &bounds, &within) ||
      !read_slice(bounds, slice)) {
    return nullptr;
  }
  read::Churn churn(reading->source, reading->timeline, slice, within);
  if (!run(object, churn)) return nullptr;
  return result(rows(churn.groups()), churn.replay());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_memory_usage(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  PyObject* bounds;
  Py_ssize_t intervals;
  read::Slice slice;
  if (reading == nullptr || !PyArg_ParseTuple(args, "O!n", &PyTuple_Type, &bounds, &intervals) ||
      !read_slice(bounds, slice)) {
    return nullptr;
  }
  if (intervals < 1) {
    PyErr_SetString(PyExc_ValueError, "there must be an interval");
    return nullptr;
  }
  const std::int64_t end = reading->timeline.at(read::last_ticks(reading->source));
  read::MemoryUsage usage(reading->source, reading->timeline, slice, end,
                          static_cast<std::size_t>(intervals));
  if (!run(object, usage)) return nullptr;
  Ref<> resident = list_of(usage.resident(), [](const read::ResidentPoint& point) {
    return Py_BuildValue("LK", static_cast<long long>(point.time), Number{point.bytes});
  });
  Ref<> answer(
      Py_BuildValue("NN", list_of(usage.points(), usage_point).release(), resident.release()));
  return result(std::move(answer), usage.replay());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_memory_history(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  PyObject *bounds, *pool;
  Number address;
  read::Slice slice;
  if (reading == nullptr ||
      !PyArg_ParseTuple(args, "O!KO", &PyTuple_Type, &bounds, &address, &pool) ||
      !read_slice(bounds, slice)) {
    return nullptr;
  }
  std::optional<std::uint64_t> number;
  if (pool != Py_None) {
    number = PyLong_AsUnsignedLongLong(pool);
    if (PyErr_Occurred()) return nullptr;
  }
  read::MemoryHistory history(reading->source, reading->timeline, slice, address, number);
  if (!run(object, history)) return nullptr;
  Ref<> events = list_of(history.events(), [](const read::MemoryEvent& event) {
    return Py_BuildValue("iLIKKKKK", static_cast<int>(event.action),
                         static_cast<long long>(event.time), event.thread, Number{event.domain},
                         Number{event.address}, Number{event.size}, Number{event.stack},
                         Number{event.tags});
  });
  return result(std::move(events), history.replay(), history.left_out());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_memory_failures(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  PyObject* bounds;
  read::Slice slice;
  if (reading == nullptr || !PyArg_ParseTuple(args, "O!", &PyTuple_Type, &bounds) ||
      !read_slice(bounds, slice)) {
    return nullptr;
  }
  read::MemoryFailures failures(reading->source, reading->timeline, slice);
  if (!run(object, failures)) return nullptr;
  Ref<> events = list_of(failures.events(), [](const read::MemoryEvent& event) {
    return Py_BuildValue("LIKKKKK", static_cast<long long>(event.time), event.thread,
                         Number{event.domain}, Number{event.size}, Number{event.available},
                         Number{event.stack}, Number{event.tags});
  });
  return result(std::move(events), failures.replay(), failures.left_out());
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* reader_pools(PyObject* object, PyObject*) try {
  Reading* reading = reading_of(object);
  if (reading == nullptr) return nullptr;
  Ref<> pools = list_of(reading->names.pools(), [&](const auto& pool) {
    return Py_BuildValue("KN", Number{pool.first}, reading->objects.text(pool.second).release());
  });
  return pools.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

}  // namespace whence::module
