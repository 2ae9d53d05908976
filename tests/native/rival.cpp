// rival.cpp: another tool that redirects malloc() in every library, as some do: by name, whatever it finds there, in
// pages that it leaves writable. And what it has found itself it puts back.
#include <Python.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace {

using Malloc = void* (*)(size_t);
// A compiler that knows that nothing else is ever put there calls malloc() by its name: this library's
// slot, which leads back here.
Malloc volatile real = nullptr;
std::atomic<long> calls = 0;

void* counted(size_t size) {
  ++calls;
  return real(size);
}

// In a program that is linked to a fixed address, the address of malloc() is a stub of the program's
// own, which goes on through a slot of the table that is overwritten below.
Malloc real_malloc() {
  Dl_info found;
  link_map* where = nullptr;
  const bool known = dladdr1(reinterpret_cast<void*>(malloc), &found,
                             reinterpret_cast<void**>(&where), RTLD_DL_LINKMAP) != 0;
  if (!known || *where->l_name != '\0') return malloc;
  return reinterpret_cast<Malloc>(dlsym(dlopen("libc.so.6", RTLD_LAZY), "malloc"));
}

void overwrite(void** slot, void* function) {
  const auto page = static_cast<uintptr_t>(getpagesize());
  mprotect(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page - 1)), page,
           PROT_READ | PROT_WRITE);
  *slot = function;
}

int look_at(dl_phdr_info* library, size_t, void* function) {
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC) {
      entry = reinterpret_cast<const ElfW(Dyn)*>(library->dlpi_addr + part.p_vaddr);
    }
  }
  if (entry == nullptr || strstr(library->dlpi_name, "/ld-linux") != nullptr ||
      strstr(library->dlpi_name, "vdso") != nullptr) {
    return 0;
  }
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  struct {
    const ElfW(Rela) * begin;
    size_t bytes;
  } tables[2] = {};
  for (; entry->d_tag != DT_NULL; ++entry) {
    const auto at = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(at);
    if (entry->d_tag == DT_RELA) tables[0].begin = reinterpret_cast<const ElfW(Rela)*>(at);
    if (entry->d_tag == DT_RELASZ) tables[0].bytes = at;
    if (entry->d_tag == DT_JMPREL) tables[1].begin = reinterpret_cast<const ElfW(Rela)*>(at);
    if (entry->d_tag == DT_PLTRELSZ) tables[1].bytes = at;
  }
  for (const auto& table : tables) {
    for (size_t i = 0; table.begin != nullptr && i < table.bytes / sizeof *table.begin; ++i) {
      const auto& relocation = table.begin[i];
      if (strcmp(names + symbols[relocation.r_info >> 32].st_name, "malloc") != 0) continue;
      overwrite(reinterpret_cast<void**>(library->dlpi_addr + relocation.r_offset), function);
    }
  }
  return 0;
}

PyObject* start(PyObject*, PyObject*) {
  dl_iterate_phdr(look_at, reinterpret_cast<void*>(counted));
  Py_RETURN_NONE;
}

PyObject* stop(PyObject*, PyObject*) {
  dl_iterate_phdr(look_at, reinterpret_cast<void*>(real));
  return PyLong_FromLong(calls.exchange(0));
}

PyMethodDef methods[] = {
    {"start", start, METH_NOARGS, nullptr}, {"stop", stop, METH_NOARGS, nullptr}, {}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rival", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_rival() {
  real = real_malloc();
  return PyModule_Create(&definition);
}
