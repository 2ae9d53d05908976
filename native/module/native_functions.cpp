// native_functions.cpp: see native_functions.h.
#include "module/native_functions.h"

#include <new>
#include <unordered_set>

#include "cpython/ref.h"
#include "format/records/native.h"
#include "module/record_objects.h"
#include "probes/name.h"
#include "stacks/mixed.h"
#include "stacks/modules.h"
#include "stacks/store.h"
#include "store/store.h"
#include "unwind/walk.h"

namespace whence::module {
namespace {

using cpython::Ref;

PyObject* text(base::BytePool::Ref ref) {
  const std::string_view bytes = base::names().get(ref);
  return decode_path(bytes).release();
}

// (module, path, build id, address) of each native frame in the stacks of the recording.
PyObject* recorded_native_frames(PyObject*, PyObject*) try {
  const std::uint32_t recording = store::store().generation();
  const stacks::StackTable& table = stacks::store().stacks;
  Ref<> list(PyList_New(0));
  std::unordered_set<std::uint64_t> seen;
  const stacks::StackId last = list ? table.statistics().nodes : 0;
  for (stacks::StackId id = 1; id <= last; ++id) {
    if (!store::store().has_stack(recording, id)) continue;
    const stacks::Node& node = table.node(id);
    if (!stacks::is_native(node.code) || node.code == stacks::kRemark) continue;
    const std::uint32_t module = stacks::module_of(node.code);
    const auto address = static_cast<std::uint32_t>(node.offset);
    if (!seen.insert(std::uint64_t{module} << 32 | address).second) continue;
    const stacks::Module& known = stacks::modules()[module];
    const Ref<> item(Py_BuildValue("INNI", static_cast<unsigned int>(module), text(known.path),
                                   text(known.build_id), static_cast<unsigned int>(address)));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* keep_symbol(PyObject*, PyObject* args) {
  unsigned long long module, address, line;
  PyObject *name, *filename;
  if (!PyArg_ParseTuple(args, "KKUUK", &module, &address, &name, &filename, &line)) return nullptr;
  const std::uint32_t recording = store::store().generation();
  if (recording == 0) Py_RETURN_FALSE;
  const std::uint64_t name_id = probes::name_of(recording, name);
  const std::uint64_t file_id = probes::name_of(recording, filename);
  const bool kept = store::store().write_metadata(
      format::kLongestCompact, [&](std::uint8_t* out, format::Deltas&) {
        return format::Symbol::encode(out, module, address, name_id, file_id, line);
      });
  return PyBool_FromLong(kept);
}

PyObject* native_statistics(PyObject*, PyObject*) {
  if (stacks::MixedStacks* mine = stacks::MixedStacks::if_made()) mine->count_hits();
  const unwind::Statistics& counted = unwind::statistics();
  const auto number = [](const std::atomic<std::uint64_t>& count) {
    return static_cast<unsigned long long>(count.load(std::memory_order_relaxed));
  };
  return Py_BuildValue("{sK sK sK sK sI}", "native_hits", number(counted.hits), "native_misses",
                       number(counted.misses), "native_truncated", number(counted.truncated),
                       "native_unsupported", number(counted.unsupported), "modules",
                       static_cast<unsigned int>(stacks::modules().count()));
}

}  // namespace

PyMethodDef native_functions[] = {
    {"recorded_native_frames", recorded_native_frames, METH_NOARGS,
     "recorded_native_frames($module, /)\n--\n\n"},
    {"keep_symbol", keep_symbol, METH_VARARGS,
     "keep_symbol($module, module, address, name, filename, line, /)\n--\n\n"},
    {"native_statistics", native_statistics, METH_NOARGS, "native_statistics($module, /)\n--\n\n"},
    {},
};

}  // namespace whence::module
