// call_source.h: where call events come from on this interpreter.
#pragma once

#include <Python.h>

#if PY_VERSION_HEX >= 0x030C0000
#include "cpython/monitoring.h"
namespace whence::cpython {
template <class Sink>
using CallSource = Monitoring<Sink>;
}
#else
#include "cpython/eval_hook.h"
namespace whence::cpython {
template <class Sink>
using CallSource = EvalHook<Sink>;
}
#endif
