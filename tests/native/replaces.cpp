// replaces.cpp: another tool that hooks into Python's allocators without passing on to who was there,
// and puts that back later, each time with a context that means something only to its own functions.
#include <Python.h>

#include <cstdlib>

namespace {

constexpr int kDomains = 3, kContexts = 64;
constexpr PyMemAllocatorDomain kAll[kDomains] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM,
                                                 PYMEM_DOMAIN_OBJ};
struct Context {
  long magic;
  PyMemAllocatorEx below;
};
constexpr long kMagic = 0x1234;

PyMemAllocatorEx first[kDomains], kept[kDomains];
Context contexts[kContexts][kDomains];
int next = 0;

const PyMemAllocatorEx& below(void* own) {
  auto* context = static_cast<Context*>(own);
  if (context->magic != kMagic) abort();
  return context->below;
}

void* take(void* own, std::size_t size) {
  return below(own).malloc(below(own).ctx, size);
}
void* take_zeros(void* own, std::size_t count, std::size_t size) {
  return below(own).calloc(below(own).ctx, count, size);
}
void* change(void* own, void* block, std::size_t size) {
  return below(own).realloc(below(own).ctx, block, size);
}
void give(void* own, void* block) {
  below(own).free(below(own).ctx, block);
}

PyObject* replace(PyObject*, PyObject*) {
  for (int i = 0; i < kDomains; ++i) {
    PyMem_GetAllocator(kAll[i], &kept[i]);
    Context& context = contexts[next % kContexts][i];
    context = {kMagic, first[i]};
    PyMemAllocatorEx ours = {&context, take, take_zeros, change, give};
    PyMem_SetAllocator(kAll[i], &ours);
  }
  ++next;
  Py_RETURN_NONE;
}

PyObject* restore(PyObject*, PyObject*) {
  for (int i = 0; i < kDomains; ++i) PyMem_SetAllocator(kAll[i], &kept[i]);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {{"replace", replace, METH_NOARGS, nullptr},
                         {"restore", restore, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, "replaces", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_replaces() {
  for (int i = 0; i < kDomains; ++i) PyMem_GetAllocator(kAll[i], &first[i]);
  return PyModule_Create(&module_def);
}
