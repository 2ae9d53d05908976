// inlined_call.cpp: see inlined_call.h.
#include "module/inlined_call.h"

#include <utility>

#include "base/hash.h"
#include "cpython/ref.h"
#include "module/source_range.h"
#include "module/state.h"

namespace whence::module {
namespace {

using cpython::Ref;

PyObject* as_object(InlinedCallObject* call) noexcept {
  return reinterpret_cast<PyObject*>(call);
}

// None, or one of that type; false with an error set.
bool check_type(PyObject*& argument, PyTypeObject* type, const char* what) noexcept {
  if (argument == Py_None) return argument = nullptr, true;
  if (Py_IS_TYPE(argument, type)) return true;
  PyErr_Format(PyExc_TypeError, "%s must be %s or None, not %.100s", what, type->tp_name,
               Py_TYPE(argument)->tp_name);
  return false;
}

// None, or exactly a str, as a reference of its own; false with an error set.
bool check_text(PyObject* argument, const char* what, Ref<>& text) noexcept {
  if (argument == Py_None) return true;
  text = Ref<>(exact_text(argument, what));
  return static_cast<bool>(text);
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"function", "range", "type", "instance", "callee", nullptr};
  PyObject *function, *range, *of_type = Py_None, *instance = Py_None, *callee = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOO:InlinedCall", const_cast<char**>(names),
                                   &function, &range, &of_type, &instance, &callee)) {
    return nullptr;
  }
  PyObject* module = PyType_GetModule(type);
  if (module == nullptr) return nullptr;
  const HandleTypes& types = state_of(module).handles;
  const Ref<> name(exact_text(function, "function"));
  Ref<> type_name, instance_name;
  if (!name || !check_type(range, types.range, "range") ||
      !check_text(of_type, "type", type_name) || !check_text(instance, "instance", instance_name) ||
      !check_type(callee, types.call, "callee")) {
    return nullptr;
  }
  return make_call(type, {name.get(), range, type_name.get(), instance_name.get(),
                          callee != nullptr ? as_call(callee) : nullptr});
}

// Callees that nobody else has are taken off the list before they are let go: the list may be long.
// A reference that is the last one is ours, so nobody can take another meanwhile.
void dealloc(PyObject* object) {
  InlinedCallObject& call = *as_call(object);
  for (InlinedCallObject* callee = call.callee; callee != nullptr;) {
    InlinedCallObject* next = nullptr;
    if (Py_REFCNT(as_object(callee)) == 1) next = std::exchange(callee->callee, nullptr);
    Py_DECREF(as_object(callee));
    callee = next;
  }
  PyTypeObject* type = Py_TYPE(object);
  Py_DECREF(call.function);
  Py_XDECREF(call.range);
  Py_XDECREF(call.type);
  Py_XDECREF(call.instance);
  type->tp_free(object);
  Py_DECREF(type);
}

template <PyObject* InlinedCallObject::* kField>
PyObject* get(PyObject* object, void*) {
  return or_none(as_call(object)->*kField);
}

PyObject* get_callee(PyObject* object, void*) {
  return or_none(as_object(as_call(object)->callee));
}

Py_ssize_t length(PyObject* object) {
  return as_call(object)->depth;
}

PyObject* repr(PyObject* object) {
  const InlinedCallObject& call = *as_call(object);
  Ref<> text(PyUnicode_FromFormat("InlinedCall(%R, %R", call.function,
                                  call.range != nullptr ? call.range : Py_None));
  const auto add = [&text](const char* format, auto value) {
    if (text) text = Ref<>(PyUnicode_FromFormat(format, text.get(), value));
  };
  if (call.type != nullptr) add("%U, type=%R", call.type);
  if (call.instance != nullptr) add("%U, instance=%R", call.instance);
  if (call.callee != nullptr) add("%U, callee=<InlinedCall, %zd deep>", call.callee->depth);
  add("%U%s", ")");
  return text.release();
}

Py_hash_t hash(PyObject* object) {
  const auto value = static_cast<Py_hash_t>(as_call(object)->hash);
  return value == -1 ? -2 : value;
}

bool same(const InlinedCallObject* a, const InlinedCallObject* b) noexcept {
  for (; a != b; a = a->callee, b = b->callee) {
    if (a == nullptr || b == nullptr || a->hash != b->hash || a->depth != b->depth ||
        !same_text(a->function, b->function) || !same_range(a->range, b->range) ||
        !same_text(a->type, b->type) || !same_text(a->instance, b->instance)) {
      return false;
    }
  }
  return true;
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  if (!Py_IS_TYPE(b, Py_TYPE(a)) || (operation != Py_EQ && operation != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong(same(as_call(a), as_call(b)) == (operation == Py_EQ));
}

std::uint64_t hash_text(std::uint64_t hash, PyObject* text) noexcept {
  return base::mix(hash, text != nullptr ? static_cast<std::uint64_t>(PyObject_Hash(text)) : 1);
}

PyGetSetDef attributes[] = {
    {"function", get<&InlinedCallObject::function>, nullptr, "Who is called.", nullptr},
    {"range", get<&InlinedCallObject::range>, nullptr,
     "Where it is called, in its caller; None: not known.", nullptr},
    {"type", get<&InlinedCallObject::type>, nullptr,
     "The class of the module that the function belongs to.", nullptr},
    {"instance", get<&InlinedCallObject::instance>, nullptr, "What that module is called.",
     nullptr},
    {"callee", get_callee, nullptr, "The call inside this one, or None.", nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>("InlinedCall(function, range, type=None, instance=None, callee=None)\n"
                       "--\n\n"
                       "A call that a compiler has inlined, and the calls inside it.\n\n"
                       "A list, outermost caller first: function is who is called, range is\n"
                       "where, callee the next call further in. Lists share what they have in\n"
                       "common. Immutable, and equal if all fields are.")},
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_getset, attributes},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {},
};

PyType_Spec spec = {"whence.handles.InlinedCall", sizeof(InlinedCallObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

PyObject* make_call(PyTypeObject* type, const CallFields& fields) noexcept {
  PyObject* made = type->tp_alloc(type, 0);
  if (made == nullptr) return nullptr;
  InlinedCallObject& call = *as_call(made);
  call.function = Py_NewRef(fields.function);
  call.range = Py_XNewRef(fields.range);
  call.type = Py_XNewRef(fields.type);
  call.instance = Py_XNewRef(fields.instance);
  call.callee = fields.callee;
  Py_XINCREF(as_object(fields.callee));
  std::uint64_t hash = fields.callee != nullptr ? fields.callee->hash : 0;
  hash = hash_text(hash_text(hash_text(hash, call.function), call.type), call.instance);
  call.hash = base::mix(hash, call.range != nullptr ? hash_range(call.range) : 1);
  call.depth = 1 + (fields.callee != nullptr ? fields.callee->depth : 0);
  return made;
}

PyTypeObject* make_call_type(PyObject* module) noexcept {
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace whence::module
