// symbol_functions.cpp: see symbol_functions.h. src/whence/_core.pyi says what each one does.
//
// While the GIL is given up, and in whatever calls what does so, no frame here owns a reference: a
// daemon thread that outlives the interpreter is unwound there (native/README.md).
#include "module/symbol_functions.h"

#include <errno.h>

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "cpython/ref.h"
#include "elf/demangle.h"
#include "elf/image.h"
#include "elf/notes.h"
#include "elf/symbols.h"

namespace whence::module {
namespace {

using cpython::Ref;
using elf::Problem;

struct ElfObject {
  PyObject ob_base;
  PyObject* path;
  elf::Image* image;
  std::atomic<const elf::Symbols*> symbols;  // read when they are first asked for
};

ElfObject* as_elf(PyObject* object) noexcept {
  return reinterpret_cast<ElfObject*>(object);
}

PyObject* raise(Problem problem, int error, PyObject* path) {
  if (problem == Problem::not_read) {
    errno = error;
    return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
  }
  return PyErr_Format(PyExc_ValueError, "%R %s", path, elf::text_of(problem));
}

// Runs something without the GIL. That memory is short is told when it is held again.
template <class Action>
void unlocked(Action action) {
  bool is_short = false;
  PyThreadState* state = PyEval_SaveThread();
  try {
    action();
  } catch (const std::bad_alloc&) {
    is_short = true;
  }
  PyEval_RestoreThread(state);
  if (is_short) throw std::bad_alloc();
}

// Opens what the path names; false with Python's error set.
bool open_file(ElfObject* self, const char* path) {
  auto image = std::make_unique<elf::Image>();
  Problem problem = Problem::none;
  int error = 0;
  unlocked([&] {
    elf::Bytes bytes;
    problem = elf::Bytes::open(path, bytes);
    if (problem == Problem::none) problem = image->open(std::move(bytes));
    error = errno;
  });
  if (problem != Problem::none) return raise(problem, error, self->path) != nullptr;
  self->image = image.release();
  return true;
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"path", nullptr};
  PyObject* given;
  PyObject* path;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:ElfFile", const_cast<char**>(names),
                                   &given) ||
      !PyUnicode_FSConverter(given, &path)) {
    return nullptr;
  }
  PyObject* made = type->tp_alloc(type, 0);
  bool is_open = false;
  if (made != nullptr) {
    as_elf(made)->path = Py_NewRef(given);
    try {
      is_open = open_file(as_elf(made), PyBytes_AS_STRING(path));
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    }
  }
  Py_DECREF(path);
  if (!is_open) Py_CLEAR(made);
  return made;
}

void dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  delete as_elf(object)->symbols.load();
  delete as_elf(object)->image;
  Py_XDECREF(as_elf(object)->path);
  type->tp_free(object);
  Py_DECREF(type);
}

// Whoever comes first leaves them for the others; two may read them at the same time.
const elf::Symbols* symbols_of(ElfObject* self, Problem& problem) {
  if (const elf::Symbols* there = self->symbols.load()) return there;
  auto read = std::make_unique<elf::Symbols>();
  problem = read->read(*self->image);
  if (problem != Problem::none) return nullptr;
  const elf::Symbols* before = nullptr;
  if (!self->symbols.compare_exchange_strong(before, read.get())) return before;
  return read.release();
}

// One of up to 64 bits for each; false with Python's error set.
bool read_addresses(PyObject* list, std::vector<std::uint64_t>& addresses) {
  if (!PyList_Check(list)) {
    PyErr_SetString(PyExc_TypeError, "addresses are a list of numbers");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    const unsigned long long address = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(list, i));
    if (address == ~0ull && PyErr_Occurred()) return false;
    addresses.push_back(address);
  }
  return true;
}

PyObject* text_object(const std::string& text) noexcept {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

PyObject* answers(const std::vector<std::optional<elf::Found>>& found) {
  Ref<> list(PyList_New(static_cast<Py_ssize_t>(found.size())));
  for (std::size_t i = 0; list && i < found.size(); ++i) {
    PyObject* answer = Py_NewRef(Py_None);
    if (found[i].has_value()) {
      Py_SETREF(answer, Py_BuildValue("(NK)", text_object(found[i]->name),
                                      static_cast<unsigned long long>(found[i]->start)));
    }
    if (answer == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), answer);
  }
  return list.release();
}

PyObject* find(PyObject* object, PyObject* list) try {
  ElfObject* self = as_elf(object);
  std::vector<std::uint64_t> addresses;
  if (!read_addresses(list, addresses)) return nullptr;
  std::vector<std::optional<elf::Found>> found;
  Problem problem = Problem::none;
  int error = 0;
  unlocked([&] {
    const elf::Symbols* symbols = symbols_of(self, problem);
    error = errno;
    if (symbols != nullptr) found = elf::find_demangled(*symbols, *self->image, addresses);
  });
  return problem == Problem::none ? answers(found) : raise(problem, error, self->path);
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* get_path(PyObject* object, void*) {
  return Py_NewRef(as_elf(object)->path);
}

PyObject* get_build_id(PyObject* object, void*) {
  constexpr char kDigits[] = "0123456789abcdef";
  const std::string& id = as_elf(object)->image->build_id();
  if (id.empty()) Py_RETURN_NONE;
  char text[2 * elf::kLongestBuildId];
  for (std::size_t i = 0; i < id.size(); ++i) {
    text[2 * i] = kDigits[static_cast<unsigned char>(id[i]) >> 4];
    text[2 * i + 1] = kDigits[id[i] & 0xF];
  }
  return PyUnicode_FromStringAndSize(text, static_cast<Py_ssize_t>(2 * id.size()));
}

PyObject* get_has_debug_info(PyObject* object, void*) {
  return PyBool_FromLong(as_elf(object)->image->has_debug_info());
}

PyObject* get_has_symbols(PyObject* object, void*) {
  return PyBool_FromLong(as_elf(object)->image->has_symbols());
}

PyObject* get_debug_size(PyObject* object, void*) {
  return PyLong_FromUnsignedLongLong(as_elf(object)->image->debug_size());
}

PyObject* get_load_address(PyObject* object, void*) {
  return PyLong_FromUnsignedLongLong(as_elf(object)->image->load_address());
}

PyObject* get_debug_link(PyObject* object, void*) {
  const std::string& name = as_elf(object)->image->debug_link();
  if (name.empty()) Py_RETURN_NONE;
  return PyUnicode_DecodeFSDefaultAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
}

// A text that has no UTF-8 is no mangled name.
PyObject* demangle(PyObject*, PyObject* name) try {
  if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "a name is a str");
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (text == nullptr) {
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) return nullptr;
    PyErr_Clear();
    return Py_NewRef(name);
  }
  return text_object(elf::demangle({text, static_cast<std::size_t>(size)}));
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyMethodDef methods[] = {
    {"find", find, METH_O, "find($self, addresses, /)\n--\n\n"},
    {},
};

PyGetSetDef getters[] = {
    {"path", get_path, nullptr, nullptr, nullptr},
    {"build_id", get_build_id, nullptr, nullptr, nullptr},
    {"has_debug_info", get_has_debug_info, nullptr, nullptr, nullptr},
    {"has_symbols", get_has_symbols, nullptr, nullptr, nullptr},
    {"debug_size", get_debug_size, nullptr, nullptr, nullptr},
    {"load_address", get_load_address, nullptr, nullptr, nullptr},
    {"debug_link", get_debug_link, nullptr, nullptr, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {},
};

PyType_Spec spec = {"whence._core.ElfFile", sizeof(ElfObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

PyMethodDef functions[] = {
    {"demangle", demangle, METH_O, "demangle($module, name, /)\n--\n\n"},
    {},
};

}  // namespace

bool add_symbols(PyObject* module) noexcept {
  const Ref<> type(PyType_FromModuleAndSpec(module, &spec, nullptr));
  return type && PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type.get())) == 0 &&
         PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace whence::module
