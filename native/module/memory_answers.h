// memory_answers.h: answers to questions about memory, as Python objects.
//
// Threads: holders of the GIL, which unpacking may let go meanwhile.
// Allocates: what native/read/ says, and Python objects. Fails by: Python's error.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "module/busy.h"
#include "module/reader_tables.h"
#include "module/reader_type.h"
#include "read/memory_query.h"

namespace whence::module {

using Number = unsigned long long;

// Reads until there is an answer; false if it was interrupted, with Python's error set.
inline bool run(PyObject* reader, read::MemoryQuery& query) {
  const Busy busy(as_reader(reader));
  for (;;) {
    const read::Next next = query.advance();
    if (next == read::Next::end) return true;
    if (next == read::Next::aborted || PyErr_CheckSignals() != 0) return false;
  }
}

// A list of what `make` gives for each, a new reference.
template <class Items, class Make>
cpython::Ref<> list_of(const Items& items, Make&& make) {
  cpython::Ref<> list(PyList_New(static_cast<Py_ssize_t>(items.size())));
  Py_ssize_t place = 0;
  for (auto item = items.begin(); list && item != items.end(); ++item) {
    PyObject* made = make(*item);
    if (made == nullptr) return {};
    PyList_SET_ITEM(list.get(), place++, made);
  }
  return list;
}

// (stack, domain, thread, tags, bytes, count)
inline cpython::Ref<> rows(const std::vector<read::MemoryGroup>& groups) {
  return list_of(groups, [](const read::MemoryGroup& group) {
    return Py_BuildValue("KKIKKK", Number{group.origin.stack}, Number{group.origin.domain},
                         group.origin.thread, Number{group.origin.tags}, Number{group.bytes},
                         Number{group.count});
  });
}

// (taken, freed, before, contradictions, out_of_memory, left_out, disorder), and up to when was
// read
inline PyObject* result(cpython::Ref<> answer, const read::Replay& replay,
                        std::uint64_t left_out = 0) {
  const read::MemoryCounts& counts = replay.counts();
  return Py_BuildValue("N(KKKKKKK)N", answer.release(), Number{counts.taken}, Number{counts.freed},
                       Number{counts.before}, Number{counts.contradictions},
                       Number{counts.out_of_memory}, Number{replay.left_out() + left_out},
                       Number{replay.disorder()}, time_or_none(replay.read_until()));
}

}  // namespace whence::module
