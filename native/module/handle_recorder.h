// handle_recorder.h: _core.HandleRecorder, which issues handles, and the rows that it keeps.
//
// Threads: holders of the GIL; without one, a critical section on the recorder.
// Allocates: segments of rows, each twice as large as the one before; rows never move.
// Fails by: Python's error; a handle that was taken by a call that failed is never given again.
//
// Rows are only added, so whoever has a recorder and a count has a list that never changes: that is
// a snapshot, and why stop() need not copy.
#pragma once

#include <Python.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace whence::module {

// nullptr stands for None. Handles go up from row to row.
struct HandleRow {
  std::int64_t handle;
  PyObject* range;
  PyObject* kind;  // exactly a str
  PyObject* stack;
  PyObject* edge;  // a tuple: the kind of the edge, and a tuple of parents
};

class HandleRows {
 public:
  static constexpr unsigned kFirstBits = 6;

  [[nodiscard]] std::size_t size() const noexcept {
    return std::atomic_ref(const_cast<std::size_t&>(size_)).load(std::memory_order_acquire);
  }
  [[nodiscard]] const HandleRow& operator[](std::size_t at) const noexcept {
    const Place place = locate(at);
    return segments_[place.segment][place.offset];
  }
  // Makes room for one more; false if there is no memory.
  [[nodiscard]] bool make_room() noexcept { return next_ != end_ || add_segment(); }
  // There is room.
  void add(const HandleRow& row) noexcept {
    *next_++ = row;
    std::atomic_ref(size_).store(size_ + 1, std::memory_order_release);
  }
  // Among the first `count` rows; `count` if it is none of them.
  [[nodiscard]] std::size_t find(std::int64_t handle, std::size_t count) const noexcept;
  // Lets all go. Nobody else has them.
  void release() noexcept;

 private:
  struct Place {
    unsigned segment;
    std::size_t offset;
    std::size_t size;
  };

  static constexpr Place locate(std::size_t at) noexcept {
    const auto segment = static_cast<unsigned>(std::bit_width(at >> kFirstBits));
    const std::size_t first = std::size_t{1} << kFirstBits << segment >> 1;
    return segment == 0 ? Place{0, at, std::size_t{1} << kFirstBits}
                        : Place{segment, at - first, first};
  }
  bool add_segment() noexcept;

  HandleRow* next_;
  HandleRow* end_;
  std::size_t size_;
  HandleRow* segments_[48 - kFirstBits];
};

struct RecorderObject {
  PyObject_HEAD
  PyObject* module;  // for the types of its rows
  HandleRows rows;
};

struct SnapshotObject {
  PyObject_HEAD
  RecorderObject* recorder;
  std::size_t count;
};

[[nodiscard]] inline SnapshotObject* as_snapshot(PyObject* object) noexcept {
  return reinterpret_cast<SnapshotObject*>(object);
}

// For tests: which handle comes next, if that is none from before.
[[nodiscard]] PyObject* skip_handles(PyObject* module, PyObject* to) noexcept;

}  // namespace whence::module
