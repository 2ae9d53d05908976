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
 * Compile with -I$(python -c 'import whence; print(whence.get_include())'). Works from C and C++.
 */
#ifndef WHENCE_H
#define WHENCE_H

#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t whence_stack; /* 0 is the empty stack; equal numbers are equal stacks */
typedef uint32_t whence_name;  /* 0 is no name; stays valid as long as the process */

/* A span under way. Its content is whence's own; zero bytes are a span that was not begun. */
typedef struct whence_span {
  uint64_t own[5];
} whence_span;

#define WHENCE_API_VERSION 2u
#define WHENCE_CAPSULE "whence._core._c_api"

#define WHENCE_PYTHON 1u /* what to capture: the Python frames */
#define WHENCE_NO_LIMIT UINT32_MAX

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
