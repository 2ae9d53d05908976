// domain_type.cpp: see domain_type.h. Methods are written in C so that no frame of ours is on the
// stack of an event.
#include "module/domain_type.h"

#include <optional>
#include <span>

#include "cpython/ref.h"
#include "probes/name.h"
#include "probes/pools.h"
#include "probes/thread_tags.h"

namespace whence::module {
namespace {

struct DomainObject {
  PyObject ob_base;
  PyObject* name;
  probes::Pool pool;
};

DomainObject* as_domain(PyObject* object) noexcept {
  return reinterpret_cast<DomainObject*>(object);
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"name", nullptr};
  PyObject* name;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U:Domain", const_cast<char**>(names), &name)) {
    return nullptr;
  }
  const probes::Pool pool = probes::pool_named(probes::ref_of(name));
  if (pool == 0) {
    PyErr_SetString(PyExc_RuntimeError, "there is no room for another domain of memory");
    return nullptr;
  }
  PyObject* made = type->tp_alloc(type, 0);
  if (made == nullptr) return nullptr;
  as_domain(made)->name = Py_NewRef(name);
  as_domain(made)->pool = pool;
  return made;
}

void dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  Py_CLEAR(as_domain(object)->name);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* repr(PyObject* object) {
  return PyUnicode_FromFormat("whence.memory.domain(%R)", as_domain(object)->name);
}

PyObject* get_name(PyObject* object, void*) {
  return Py_NewRef(as_domain(object)->name);
}

// One of up to 64 bits; nothing with Python's error set.
std::optional<std::uint64_t> read_number(PyObject* value, const char* what) {
  PyObject* error = PyExc_TypeError;
  if (PyLong_Check(value)) {
    const unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (number != ~0ull || !PyErr_Occurred()) return number;
    PyErr_Clear();
    error = PyExc_ValueError;
  }
  PyErr_Format(error, "%s must be a number of up to 64 bits, not %.200R", what, value);
  return std::nullopt;
}

using TellBlock = void (*)(probes::Pool, std::uint64_t, std::uint64_t) noexcept;
using TellAddress = void (*)(probes::Pool, std::uint64_t) noexcept;

template <TellBlock kTell>
PyObject* tell_block(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "this takes an address and a size");
  const auto address = read_number(args[0], "address");
  const auto size = address.has_value() ? read_number(args[1], "size") : std::nullopt;
  if (!size.has_value()) return nullptr;
  kTell(as_domain(object)->pool, *address, *size);
  Py_RETURN_NONE;
}

template <TellAddress kTell>
PyObject* tell_address(PyObject* object, PyObject* value) {
  const auto address = read_number(value, "address");
  if (!address.has_value()) return nullptr;
  kTell(as_domain(object)->pool, *address);
  Py_RETURN_NONE;
}

PyObject* out_of_memory(PyObject* object, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"size", "available", nullptr};
  PyObject *wanted, *there = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:out_of_memory", const_cast<char**>(names),
                                   &wanted, &there)) {
    return nullptr;
  }
  const auto size = read_number(wanted, "size");
  if (!size.has_value()) return nullptr;
  std::optional<std::uint64_t> available = probes::kNotKnown;
  if (there != Py_None) available = read_number(there, "available");
  if (!available.has_value()) return nullptr;
  probes::pool_out_of_memory(as_domain(object)->pool, *size, *available);
  Py_RETURN_NONE;
}

template <class Function>
PyCFunction as_method(Function function) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef methods[] = {
    {"allocated", as_method(tell_block<probes::pool_allocated>), METH_FASTCALL,
     "allocated($self, address, size, /)\n--\n\nTell that a block was handed out."},
    {"freed", tell_address<probes::pool_freed>, METH_O,
     "freed($self, address, /)\n--\n\n"
     "Tell that a block is given back, before anybody else can have it."},
    {"segment_allocated", as_method(tell_block<probes::segment_allocated>), METH_FASTCALL,
     "segment_allocated($self, address, size, /)\n--\n\n"
     "Tell that the allocator has taken memory to cut blocks out of."},
    {"segment_freed", tell_address<probes::segment_freed>, METH_O,
     "segment_freed($self, address, /)\n--\n\nTell that it gives such memory back."},
    {"out_of_memory", as_method(out_of_memory), METH_VARARGS | METH_KEYWORDS,
     "out_of_memory($self, size, available=None)\n--\n\n"
     "Tell that somebody asked for so many bytes in vain, and how many there were."},
    {},
};

PyGetSetDef attributes[] = {{"name", get_name, nullptr, "What it is called.", nullptr}, {}};

PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>("Domain(name)\n--\n\n"
                       "An allocator, or a pool of a device, that reports what it does.\n\n"
                       "Made by whence.memory.domain(). Its methods may be called from any\n"
                       "thread, and cost next to nothing while no memory is recorded.")},
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {},
};

PyType_Spec spec = {"whence.memory.Domain", sizeof(DomainObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

PyObject* set_tags(PyObject*, PyObject* text) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(text, &size);
  if (bytes == nullptr) return nullptr;
  probes::set_tags({reinterpret_cast<const std::uint8_t*>(bytes), static_cast<std::size_t>(size)});
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef tag_functions[] = {
    {"set_tags", set_tags, METH_O, "set_tags($module, text, /)\n--\n\n"},
    {},
};

PyTypeObject* make_domain_type(PyObject* module) noexcept {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace whence::module
