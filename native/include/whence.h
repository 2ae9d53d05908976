/* whence.h: capturing stacks from native code.
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

#define WHENCE_API_VERSION 1u
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
