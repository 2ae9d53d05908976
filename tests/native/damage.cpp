// damage.cpp: every prefix and every single-bit flip of a recording, read completely.
//
// damage.run(recording, unpack, step, first) -> dict of counts. A closed recording whose chunks are
// sealed holds no byte that could change unnoticed: either nothing is read, or a problem is
// reported, or the records are the same. In every case they are some of the original ones, in
// their order.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "read/calls.h"
#include "read/memory_usage.h"
#include "read/names.h"
#include "read/rewrite.h"
#include "read/spans.h"
#include "read/timeline.h"
#include "read/totals.h"

namespace {

using namespace whence;
using Bytes = std::vector<std::uint8_t>;

// Unpacking goes through Python once for each distinct chunk.
struct Unpacker {
  PyObject* callable;
  std::map<std::string, std::string> known;

  static read::Unpacked call(void* self, std::span<const std::uint8_t> packed,
                             std::span<std::uint8_t> out, std::size_t* part) {
    auto& unpacker = *static_cast<Unpacker*>(self);
    std::string key(packed.begin(), packed.end());
    key += (part != nullptr ? '+' : '/') + std::to_string(out.size());
    auto found = unpacker.known.find(key);
    if (found == unpacker.known.end()) {
      PyObject* result = PyObject_CallFunction(
          unpacker.callable, "y#nO", reinterpret_cast<const char*>(packed.data()),
          static_cast<Py_ssize_t>(packed.size()), static_cast<Py_ssize_t>(out.size()),
          part != nullptr ? Py_True : Py_False);
      if (result == nullptr) return read::Unpacked::abort;
      std::string text(PyBytes_AS_STRING(result), static_cast<std::size_t>(PyBytes_Size(result)));
      Py_DECREF(result);
      if (unpacker.known.size() > 64) unpacker.known.erase(std::prev(unpacker.known.end()));
      found = unpacker.known.emplace(key, text).first;
    }
    const std::size_t size = found->second.size();
    if (part != nullptr ? size > out.size() : size != out.size()) return read::Unpacked::bad;
    if (size != 0) std::memcpy(out.data(), found->second.data(), size);
    if (part != nullptr) *part = size;
    return read::Unpacked::good;
  }
};

struct Outcome {
  bool opened = false;
  std::vector<std::uint32_t> records;  // a hash of each
  std::uint64_t events = 0;            // known ones among them
  std::uint64_t spans = 0;
  std::uint64_t calls = 0;
  bool impossible = false;  // a call that cannot be
  read::Totals totals;
};

std::uint32_t hash_of(const format::Record& record) {
  std::uint32_t hash = base::checksum(&record.code, 1);
  hash = base::checksum(&record.thread, sizeof record.thread, hash);
  hash = base::checksum(&record.time, sizeof record.time, hash);
  const std::size_t count = record.kind != nullptr ? record.kind->count() : 0;
  const std::size_t numbers =
      format::shape_of(record.code) == format::kBody && count != 0 ? count - 1 : count;
  hash = base::checksum(record.values.data(), numbers * sizeof(std::uint64_t), hash);
  return base::checksum(record.bytes.data(), record.bytes.size(), hash);
}

bool read_all(std::span<const std::uint8_t> bytes, Unpacker& unpacker, int sink, bool rewrite,
              Outcome& out) {
  read::Source source(read::Input::of_memory(bytes), {Unpacker::call, &unpacker});
  out.opened = source.open() == read::Opened::good;
  if (!out.opened) return true;
  const read::Timeline timeline(source);
  read::Names names;
  if (!names.fill(source)) return false;
  read::Cursor cursor(source, read::Select::all);
  format::Record record;
  read::Next next;
  std::int64_t sum = 0;
  while ((next = cursor.next(record)) == read::Next::record) {
    out.records.push_back(hash_of(record));
    out.events += record.kind != nullptr && record.kind->event;
    sum ^= timeline.at(record.time);
  }
  if (next == read::Next::aborted) return false;
  read::SpanReader spans(source);
  read::Span span;
  while (spans.next(span) == read::Next::record) ++out.spans;
  read::CallReader calls(source, names, timeline);
  read::Call call;
  while (calls.next(call) == read::Next::record) {
    if (call.duration < call.own || call.number <= call.parent) out.impossible = true;
    ++out.calls;
  }
  read::PeakOfMemory peak(source, timeline, {});
  while ((next = peak.advance()) == read::Next::record) continue;
  if (next == read::Next::aborted) return false;
  out.totals = read::count(source);
  if (rewrite && read::rewrite(source, sink, {}).aborted) return false;
  static_cast<void>(sum);
  return !out.totals.aborted;
}

bool is_subsequence(const std::vector<std::uint32_t>& part, const std::vector<std::uint32_t>& all) {
  std::size_t at = 0;
  for (const std::uint32_t hash : part) {
    while (at != all.size() && all[at] != hash) ++at;
    if (at++ == all.size()) return false;
  }
  return true;
}

double time_spent() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Counts {
  unsigned long cases = 0, refused = 0, noticed = 0, unchanged = 0;
  double slowest = 0;
};

// What went wrong with a case, or nullptr.
const char* judge(const Outcome& original, const Outcome& damaged, Counts& counts) {
  ++counts.cases;
  if (!damaged.opened) {
    ++counts.refused;
    return nullptr;
  }
  if (damaged.impossible) return "a call was read that cannot be";
  if (damaged.records.size() != damaged.totals.records) return "two ways of reading disagree";
  if (damaged.totals.recorded < damaged.events) return "events were read that are not counted";
  if (damaged.totals.recorded > original.totals.recorded) return "more events than there were";
  if (!is_subsequence(damaged.records, original.records)) return "a record was read that was not";
  if (!damaged.totals.problems.empty()) {
    ++counts.noticed;
    return nullptr;
  }
  ++counts.unchanged;
  const bool same = damaged.records == original.records && damaged.calls == original.calls;
  return same ? nullptr : "damage was not noticed";
}

PyObject* report(const Counts& counts, const char* wrong, unsigned long where) {
  return Py_BuildValue("{sk sk sk sk sd sz sk}", "cases", counts.cases, "refused", counts.refused,
                       "noticed", counts.noticed, "unchanged", counts.unchanged, "slowest",
                       counts.slowest, "wrong", wrong, "where", where);
}

// One damaged copy after the other, made by `damage(i)`.
template <class Damage>
PyObject* run(const char* data, Py_ssize_t size, PyObject* unpack, unsigned long first,
              unsigned long last, unsigned long step, Damage&& damage) {
  Unpacker unpacker{unpack, {}};
  const Bytes bytes(data, data + size);
  const int sink = ::open("/dev/null", O_WRONLY);
  Outcome original;
  if (!read_all(bytes, unpacker, sink, true, original) || !original.opened) {
    ::close(sink);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "not a recording to begin with");
    return nullptr;
  }
  Counts counts;
  for (unsigned long i = first; i < last; i += step) {
    const double start = time_spent();
    const Bytes copy = damage(bytes, i);  // its own block: a sanitizer sees its end
    Outcome outcome;
    const bool whole = read_all(copy, unpacker, sink, i % 16 == 0, outcome);
    counts.slowest = std::max(counts.slowest, time_spent() - start);
    const char* wrong = whole ? judge(original, outcome, counts) : "reading was aborted";
    if (wrong != nullptr || PyErr_CheckSignals() != 0) {
      ::close(sink);
      return PyErr_Occurred() ? nullptr : report(counts, wrong, i);
    }
  }
  ::close(sink);
  return report(counts, nullptr, 0);
}

PyObject* prefixes(PyObject*, PyObject* args) {
  const char* data;
  Py_ssize_t size;
  PyObject* unpack;
  unsigned long step, first;
  if (!PyArg_ParseTuple(args, "y#Okk", &data, &size, &unpack, &step, &first)) return nullptr;
  return run(data, size, unpack, first, static_cast<unsigned long>(size), step,
             [](const Bytes& bytes, unsigned long length) {
               return Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
             });
}

PyObject* flips(PyObject*, PyObject* args) {
  const char* data;
  Py_ssize_t size;
  PyObject* unpack;
  unsigned long step, first;
  if (!PyArg_ParseTuple(args, "y#Okk", &data, &size, &unpack, &step, &first)) return nullptr;
  return run(data, size, unpack, first, 8 * static_cast<unsigned long>(size), step,
             [](const Bytes& bytes, unsigned long bit) {
               Bytes copy = bytes;
               copy[bit / 8] = static_cast<std::uint8_t>(copy[bit / 8] ^ (1u << (bit % 8)));
               return copy;
             });
}

PyMethodDef methods[] = {{"prefixes", prefixes, METH_VARARGS, nullptr},
                         {"flips", flips, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "damage", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_damage() {
  return PyModule_Create(&definition);
}
