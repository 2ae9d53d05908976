/* whence.h: capturing stacks and recording events from native code.
 *
 *     const whence_api *whence = whence_import();     // once, with the GIL; NULL on failure
 *     whence_stack where = whence->capture(WHENCE_PYTHON, 0, WHENCE_NO_LIMIT);
 *     PyObject *stack = whence->stack_object(where);  // later, with the GIL: a whence.Stack
 *
 * A stack is a number: copy it, store it, compare it, let it go. It stays valid as long as the
 * process. capture() may be called on any thread, with or without the GIL, under any lock, with an
 * exception pending; it never blocks, never raises and never runs Python code. A thread that is not
 * attached to the main interpreter has an empty Python part. Do not call it from a signal handler
 * or inside a memory allocator: the first capture of a thread, or of a function, allocates.
 *
 * Events go into the recording that whence.record() has started, if there is one:
 *
 *     static whence_name load;                        // once: a name is a number too
 *     load = whence->name("load", 4);
 *     whence_span span;
 *     whence->span_begin(&span, load);
 *     whence->counter(bytes_read, n);
 *     whence->span_end(&span, 0);
 *
 * They need no GIL either, take no lock of yours, never block and never fail: an event that cannot
 * be kept is counted in the recording. A thread is met at its first event.
 *
 * An allocator, or a pool of memory on a device, reports what it does in a domain of its own:
 *
 *     static whence_domain gpu;                       // once: a number for the name
 *     gpu = whence->domain("cuda:0", 6);
 *     whence->allocated(gpu, address, size);          // when it has handed a block out
 *     whence->freed(gpu, address);                    // before anybody else can have it
 *
 * That is recorded while memory is, record(memory=True), with the stack of the caller, if it is
 * attached to the interpreter. It may be called with the allocator's own lock held: whence takes
 * neither that nor the GIL; but not by one that malloc() is made of, since the first event of a
 * thread, or of a function, allocates. A block that moves is freed and allocated. An allocator that
 * Python's own allocators call tells nothing while they do: only the outermost one counts.
 *
 * A backend that runs what a compiler made tells of its work, with the handle (whence.handles) that
 * the compiler gave to what was run:
 *
 *     static whence_backend jit;                      // once: a number for the name
 *     jit = whence->backend("jit", 3, NULL);
 *     whence->handle_event(jit, handle, start, end, name);  // clock_gettime(CLOCK_MONOTONIC)
 *
 * Compile with -I$(python -c 'import whence; print(whence.get_include())'). Works from C and C++.
 */
#ifndef WHENCE_H
#define WHENCE_H

#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t whence_stack;  /* 0 is the empty stack; equal numbers are equal stacks */
typedef uint32_t whence_name;   /* 0 is no name; stays valid as long as the process */
typedef uint32_t whence_domain; /* 0 is none: nothing is told; stays valid as long as the process */

typedef uint32_t whence_backend; /* 0 is none; stays valid as long as the process */

/* A span under way. Its content is whence's own; zero bytes are a span that was not begun. */
typedef struct whence_span {
  uint64_t own[5];
} whence_span;

#define WHENCE_API_VERSION 4u
#define WHENCE_CAPSULE "whence._core._c_api"

#define WHENCE_PYTHON 1u /* what to capture: the Python frames */
#define WHENCE_NATIVE 2u /* the native frames, also of a thread that Python does not know */
#define WHENCE_NO_LIMIT UINT32_MAX
#define WHENCE_NOT_KNOWN UINT64_MAX /* how much memory there is */

typedef struct whence_api {
  uint32_t version; /* WHENCE_API_VERSION of the library; members are only ever added at the end */
  uint32_t size;    /* of this structure in the library */

  /* This thread's stack now. `what` is a set of WHENCE_... bits (others are ignored), `skip`
   * leaves out that many innermost frames, `limit` keeps at most that many of the others. */
  whence_stack (*capture)(uint32_t what, uint32_t skip, uint32_t limit);

  /* A new reference to a whence.Stack. GIL needed. ValueError for a number that is no stack. */
  PyObject* (*stack_object)(whence_stack stack);

  /* Since version 2. The number of a name, UTF-8, `size` bytes; 0 for lack of memory. Takes a lock
   * of whence's for a moment. */
  whence_name (*name)(const char* text, size_t size);

  /* Is anything recorded now? To save the work of finding out what an event would say. */
  int (*recording)(void);

  void (*mark)(whence_name name);
  void (*counter)(whence_name name, int64_t value);
  void (*counter_real)(whence_name name, double value);

  /* A span may end on another thread than it began on. `error`: it was left by a failure. */
  void (*span_begin)(whence_span* span, whence_name name);
  void (*span_end)(whence_span* span, int error);

  /* A run of a garbage collector: `begun` is what collection_begin() returned. */
  uint64_t (*collection_begin)(uint64_t generation);
  void (*collection_end)(uint64_t begun, uint64_t generation, uint64_t collected,
                         uint64_t uncollectable);

  /* Names this thread in the recording. */
  void (*name_thread)(whence_name name);

  /* Since version 3. The domain with this name, UTF-8, `size` bytes; the same name is the same
   * domain. 0 for lack of memory, and for more than 1,024 names. Takes a lock of whence's for a
   * moment. */
  whence_domain (*domain)(const char* name, size_t size);

  /* A block was handed out, and is given back. Addresses are the domain's own: the same one in two
   * domains is two blocks. */
  void (*allocated)(whence_domain domain, uint64_t address, uint64_t size);
  void (*freed)(whence_domain domain, uint64_t address);

  /* The memory that the allocator itself has taken, to cut blocks out of it. */
  void (*segment_allocated)(whence_domain domain, uint64_t address, uint64_t size);
  void (*segment_freed)(whence_domain domain, uint64_t address);

  /* Somebody asked for so many bytes in vain. `available` is what there was, or
   * WHENCE_NOT_KNOWN. */
  void (*out_of_memory)(whence_domain domain, uint64_t requested, uint64_t available);

  /* Since version 4. A backend by its name, UTF-8, `size` bytes, and the namespace that its handles
   * are of: 32 hexadecimal digits, or NULL if there is no other in this process. 0 for lack of
   * memory, and for what is no namespace. Takes a lock of whence's for a moment. */
  whence_backend (*backend)(const char* name, size_t size, const char* name_space);

  /* What this handle stands for has been run, from `start` to `end`, in nanoseconds of
   * CLOCK_MONOTONIC; `name` is what it is called. Tell it on the thread that ran it, when it has
   * ended: it is shown inside what that thread is doing. */
  void (*handle_event)(whence_backend backend, int64_t handle, uint64_t start, uint64_t end,
                       whence_name name);
} whence_api;

static inline const whence_api* whence_import(void) {
  const whence_api* api = (const whence_api*)PyCapsule_Import(WHENCE_CAPSULE, 0);
  if (api != NULL && api->version < WHENCE_API_VERSION) {
    PyErr_SetString(PyExc_ImportError,
                    "the installed whence is older than the whence.h compiled against");
    return NULL;
  }
  return api;
}

#ifdef __cplusplus
}
#endif

#endif /* WHENCE_H */
