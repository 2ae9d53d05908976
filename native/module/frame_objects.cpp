// frame_objects.cpp: see frame_objects.h.
#include "module/frame_objects.h"

#include <limits>
#include <new>

#include "base/hash.h"
#include "cpython/code.h"
#include "module/record_objects.h"
#include "module/stack_type.h"
#include "stacks/json.h"

namespace whence::module {
namespace {

using cpython::Ref;
using stacks::StackId;

// The fields of whence.Frame, in order.
enum Field { kName, kFilename, kLine, kColumn, kEndLine, kEndColumn, kKind, kFields };

PyObject* field(PyObject* frame, Field index) noexcept {
  return PyTuple_GET_ITEM(frame, index);
}

bool read_number(PyObject* value, std::int32_t& out) noexcept {
  out = base::Location::kUnknown;
  if (value == Py_None) return true;
  if (!PyLong_Check(value)) return false;
  int overflow = 0;
  const long wide = PyLong_AsLongAndOverflow(value, &overflow);
  if (overflow != 0 || wide < 0 || wide > std::numeric_limits<std::int32_t>::max()) return false;
  out = static_cast<std::int32_t>(wide);
  return true;
}

std::string utf8(PyObject* text) {
  const base::UnicodeView view = cpython::view_text(text);
  std::string out(base::utf8_size(view), '\0');
  base::write_utf8(view, reinterpret_cast<std::uint8_t*>(out.data()));
  return out;
}

bool is_generated(PyObject* frame) noexcept {
  return PyUnicode_CompareWithASCIIString(field(frame, kKind), "generated") == 0;
}

}  // namespace

PyObject* number(std::int32_t value) noexcept {
  return value == base::Location::kUnknown ? Py_NewRef(Py_None) : PyLong_FromLong(value);
}

Ref<> FrameBatch::frames_of(PyObject* stack) {
  const bool detached = as_stack(stack)->detached;
  constexpr std::uint64_t kAddress = std::uint64_t{1} << 63;
  const std::uint64_t key =
      detached ? reinterpret_cast<std::uintptr_t>(stack) | kAddress : as_stack(stack)->id;
  auto [found, is_new] = lists_.try_emplace(key);
  if (is_new) {
    found->second = detached ? Ref<>(PySequence_List(as_detached(stack)->frames))
                             : live_frames(as_stack(stack)->id);
  }
  return Ref<>::borrow(found->second.get());
}

Ref<> FrameBatch::live_frames(StackId id) {
  Ref<> list(PyList_New(0));
  bool failed = !list;
  stacks::for_each_frame(id, [&](StackId step) {
    PyObject* made = failed ? nullptr : frames_at(step);
    failed = made == nullptr;
    if (failed) return;
    if (PyList_GET_SIZE(made) == 1) {
      failed = PyList_Append(list.get(), PyList_GET_ITEM(made, 0)) < 0;
    } else {
      const Py_ssize_t end = PyList_GET_SIZE(list.get());
      failed = PyList_SetSlice(list.get(), end, end, made) < 0;
    }
  });
  return failed ? Ref<>() : std::move(list);
}

PyObject* FrameBatch::frames_at(StackId id) {
  std::uint64_t key = ~std::uint64_t{0};
  if (!stacks::is_truncated(id)) {
    const stacks::Node& node = stacks::store().stacks.node(id);
    key = (std::uint64_t{node.code} << 32) | static_cast<std::uint32_t>(node.offset);
  }
  auto [found, is_new] = frames_.try_emplace(key);
  if (is_new) found->second = Ref<>(make_frames(id));
  return found->second.get();
}

PyObject* FrameBatch::make_frames(StackId id) {
  stacks::ResolvedFrame resolved = stacks::resolve(id);
  std::string where;
  if (resolved.kind == stacks::FrameKind::native) {
    if (name_native_ != nullptr) {
      PyObject* build_id = text(resolved.build_id);
      PyObject* place = path(resolved.filename);
      if (build_id == nullptr || place == nullptr) return nullptr;
      Ref<> named(PyObject_CallFunction(name_native_, "OOI", place, build_id,
                                        static_cast<unsigned int>(resolved.address)));
      return named ? PySequence_List(named.get()) : nullptr;
    }
    where = stacks::place_name(resolved);
    resolved.name = where;
  }
  const Ref<> frame(make_frame(resolved));
  if (!frame) return nullptr;
  PyObject* list = PyList_New(1);
  if (list != nullptr) PyList_SET_ITEM(list, 0, Py_NewRef(frame.get()));
  return list;
}

PyObject* FrameBatch::text(std::string_view utf8) {
  auto [found, is_new] = texts_.try_emplace(utf8);
  if (is_new) {
    found->second = Ref<>(
        PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "surrogatepass"));
  }
  return found->second.get();
}

// As the loader has it, in any encoding; os.fsencode() gives the bytes back.
PyObject* FrameBatch::path(std::string_view bytes) {
  auto [found, is_new] = paths_.try_emplace(bytes);
  if (is_new) found->second = decode_path(bytes);
  return found->second.get();
}

PyObject* FrameBatch::make_frame(const stacks::ResolvedFrame& resolved) {
  const bool lasts = resolved.kind != stacks::FrameKind::native;  // the text of its name
  Ref<> made(state_.frame_type->tp_alloc(state_.frame_type, kFields));
  if (!made) return nullptr;
  PyObject* fields[kFields] = {
      lasts ? Py_XNewRef(text(resolved.name))
            : decode_path(resolved.name).release(),  // which has a part of the path
      Py_XNewRef(lasts ? text(resolved.filename) : path(resolved.filename)),
      number(resolved.place.line),
      number(resolved.place.column),
      number(resolved.place.end_line),
      number(resolved.place.end_column),
      Py_XNewRef(text(stacks::name_of(resolved.kind))),
  };
  bool whole = true;
  for (int i = 0; i < kFields; ++i) {
    PyTuple_SET_ITEM(made.get(), i, fields[i]);
    whole = whole && fields[i] != nullptr;
  }
  return whole ? made.release() : nullptr;
}

PyObject* captured_frames(const State& state, PyObject* stack) noexcept try {
  FrameBatch batch(state);
  Ref<> frames = batch.frames_of(stack);
  if (!frames || !as_stack(stack)->detached) return frames.release();
  for (Py_ssize_t i = PyList_GET_SIZE(frames.get()); i-- != 0;) {
    if (!is_generated(PyList_GET_ITEM(frames.get(), i))) continue;
    if (PySequence_DelItem(frames.get(), i) < 0) return nullptr;
  }
  return frames.release();
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

bool check_frame(const State& state, PyObject* frame, base::Location& place) noexcept {
  if (!Py_IS_TYPE(frame, state.frame_type)) {
    PyErr_Format(PyExc_TypeError, "frames must be whence.Frame, not %.100s",
                 Py_TYPE(frame)->tp_name);
    return false;
  }
  if (PyTuple_GET_SIZE(frame) == kFields && PyUnicode_Check(field(frame, kName)) &&
      PyUnicode_Check(field(frame, kFilename)) && PyUnicode_Check(field(frame, kKind)) &&
      read_number(field(frame, kLine), place.line) &&
      read_number(field(frame, kColumn), place.column) &&
      read_number(field(frame, kEndLine), place.end_line) &&
      read_number(field(frame, kEndColumn), place.end_column)) {
    return true;
  }
  PyErr_Format(
      PyExc_TypeError,
      "a Frame needs str for name, filename and kind, and int or None for lines and columns: %R",
      frame);
  return false;
}

std::uint64_t hash_step(std::uint64_t outer, PyObject* frame, base::Location place) {
  if (is_generated(frame)) return outer;
  const std::string name = utf8(field(frame, kName));
  const std::string filename = utf8(field(frame, kFilename));
  return stacks::content_hash_step(outer, base::hash_bytes(name.data(), name.size()),
                                   base::hash_bytes(filename.data(), filename.size()), place);
}

Py_hash_t hash_from(std::uint64_t hash) noexcept {
  const auto value = static_cast<Py_hash_t>(hash);
  return value == -1 ? -2 : value;
}

void append_json_frame(std::string& out, PyObject* frame, base::Location place) {
  stacks::append_json_frame(out, utf8(field(frame, kName)), utf8(field(frame, kFilename)), place,
                            utf8(field(frame, kKind)));
}

}  // namespace whence::module
