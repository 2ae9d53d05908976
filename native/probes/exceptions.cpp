// exceptions.cpp: see exceptions.h.
#include "probes/exceptions.h"

#include <cstring>

#include "base/byte_pool.h"
#include "format/records/exception.h"
#include "probes/calls.h"
#include "store/write.h"

namespace whence::probes {
namespace {

// The exception that is on its way, the frame that it comes to next, and the one that has handled
// it, if only to clean up and let it go on. All are only compared.
struct OnItsWay {
  const PyObject* exception;
  const cpython::Frame* next;
  const cpython::Frame* handled_in;
};
thread_local constinit OnItsWay on_its_way = {};

// Has it passed through another frame before this one? Then it is not one that has just been raised
// here, at the address of one that is gone.
bool has_passed(PyObject* traceback) noexcept {
  return traceback != nullptr && PyTraceBack_Check(traceback) &&
         reinterpret_cast<PyTracebackObject*>(traceback)->tb_next != nullptr;
}

const cpython::Frame* visible_caller(const cpython::Frame* frame) noexcept {
  return cpython::shown(cpython::previous(frame));
}

template <class R>
void write(PyObject* exception, std::int64_t offset) noexcept {
  const std::uint32_t recording = CallOptions::get(detail::call_options.recording);
  const char* name = Py_TYPE(exception)->tp_name;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(name);
  const std::uint64_t type =
      store::store().string(recording, base::names().intern(std::span(bytes, std::strlen(name))));
  store::write<R>(recording, type, static_cast<std::uint64_t>(offset < 0 ? 0 : offset));
}

}  // namespace

void exception_seen(const cpython::Frame* frame, PyObject* exception, PyObject* traceback,
                    std::int64_t offset) noexcept {
  const OnItsWay before = on_its_way;
  on_its_way = {exception, visible_caller(frame), nullptr};
  if (before.exception == exception && before.next == frame && has_passed(traceback)) return;
  if (make_place_in(frame)) write<format::Raised>(exception, offset);
}

void exception_handled(const cpython::Frame* frame, PyObject* exception,
                       std::int64_t offset) noexcept {
  if (on_its_way.exception == exception && on_its_way.handled_in == frame) return;
  on_its_way = {exception, visible_caller(frame), frame};
  if (make_place_in(frame)) write<format::Handled>(exception, offset);
}

}  // namespace whence::probes
