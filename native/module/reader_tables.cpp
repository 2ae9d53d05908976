// reader_tables.cpp: see reader_tables.h. src/whence/_core.pyi says what each method does.
#include "module/reader_tables.h"

#include <new>
#include <vector>

#include "module/busy.h"
#include "module/reader_type.h"
#include "read/call_tree.h"

namespace whence::module {
namespace {

using cpython::Ref;
using Number = unsigned long long;

constexpr std::uint64_t kLeastBudget = 64u << 20;
constexpr std::uint64_t kStepsBetweenSignals = 1 << 16;

// Feeds all steps to the tree; false if it was interrupted, with Python's error set.
bool fill(read::CallReader& reader, read::CallTree& tree) {
  read::CallStep step;
  for (std::uint64_t steps = 1;; ++steps) {
    switch (reader.next(step)) {
      case read::Next::record: tree.take(step); break;
      case read::Next::end: return true;
      case read::Next::aborted: return false;
    }
    if (steps % kStepsBetweenSignals == 0 && PyErr_CheckSignals() != 0) return false;
  }
}

// One field of all nodes, as bytes.
template <class Value>
Ref<> column(const std::vector<read::TreeNode>& nodes, Value read::TreeNode::* field) noexcept {
  const auto size = static_cast<Py_ssize_t>(nodes.size() * sizeof(Value));
  Ref<> bytes(PyBytes_FromStringAndSize(nullptr, size));
  if (!bytes) return {};
  auto* out = reinterpret_cast<Value*>(PyBytes_AS_STRING(bytes.get()));
  for (const read::TreeNode& node : nodes) *out++ = node.*field;
  return bytes;
}

Ref<> functions(Reading& reading, const read::CallTree& tree) {
  const std::vector<read::FunctionTotal> totals = read::add_up(tree);
  const std::vector<read::Function>& all = tree.functions().all();
  Ref<> list(PyList_New(static_cast<Py_ssize_t>(all.size())));
  for (std::size_t i = 0; list && i < all.size(); ++i) {
    const Ref<> one = reading.objects.function(all[i]);
    if (!one) return {};
    PyObject* item =
        Py_BuildValue("OOOKKK", PyTuple_GET_ITEM(one.get(), 0), PyTuple_GET_ITEM(one.get(), 1),
                      PyTuple_GET_ITEM(one.get(), 2), static_cast<Number>(totals[i].calls),
                      static_cast<Number>(totals[i].total), static_cast<Number>(totals[i].own));
    if (item == nullptr) return {};
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list;
}

}  // namespace

bool read_time(PyObject* value, std::int64_t& time) {
  if (value == Py_None) return true;
  time = PyLong_AsLongLong(value);
  return time != -1 || !PyErr_Occurred();
}

bool read_slice(PyObject* args, read::Slice& slice) {
  PyObject *from = Py_None, *to = Py_None, *threads = Py_None, *deadline = Py_None;
  if (!PyArg_ParseTuple(args, "|OOOO", &from, &to, &threads, &deadline)) return false;
  if (!read_time(from, slice.from) || !read_time(to, slice.to)) return false;
  if (deadline != Py_None) {
    slice.deadline = PyLong_AsUnsignedLongLong(deadline);
    if (slice.deadline == read::kNoDeadline && PyErr_Occurred()) return false;
  }
  if (threads == Py_None) return true;
  slice.all_threads = false;
  const Ref<> list(PySequence_Fast(threads, "threads must be a sequence of numbers"));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    const unsigned long id = PyLong_AsUnsignedLong(PySequence_Fast_GET_ITEM(list.get(), i));
    if (id == ~0ul && PyErr_Occurred()) return false;
    slice.threads.push_back(static_cast<std::uint32_t>(id));
  }
  return true;
}

bool warn_of_part(std::optional<std::int64_t> read_until) noexcept {
  if (!read_until.has_value()) return true;
  const long long milliseconds = *read_until / 1'000'000;
  return PyErr_WarnFormat(PyExc_UserWarning, 1,
                          "only a part of the recording was read, up to %lld.%03lld s",
                          milliseconds / 1000, milliseconds % 1000) == 0;
}

PyObject* time_or_none(std::optional<std::int64_t> read_until) noexcept {
  return read_until.has_value() ? PyLong_FromLongLong(*read_until) : Py_NewRef(Py_None);
}

PyObject* reader_tree(PyObject* object, PyObject* args) try {
  Reading* reading = reading_of(object);
  read::Slice slice;
  if (reading == nullptr || !read_slice(args, slice)) return nullptr;
  const read::Source& source = reading->source;
  read::CallReader reader(source, reading->names, reading->timeline, std::move(slice));
  read::Budget budget(kLeastBudget, source.input().size());
  read::CallTree tree(reading->names, budget);
  {
    const Busy busy(as_reader(object));
    if (!fill(reader, tree)) return nullptr;
  }
  const auto& nodes = tree.nodes();
  return Py_BuildValue("NNNNNNKN", functions(*reading, tree).release(),
                       column(nodes, &read::TreeNode::parent).release(),
                       column(nodes, &read::TreeNode::function).release(),
                       column(nodes, &read::TreeNode::calls).release(),
                       column(nodes, &read::TreeNode::total).release(),
                       column(nodes, &read::TreeNode::own).release(),
                       static_cast<Number>(tree.left_out() + reader.left_out()),
                       time_or_none(reader.read_until()));
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

}  // namespace whence::module
