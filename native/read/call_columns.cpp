// call_columns.cpp: see call_columns.h.
#include "read/call_columns.h"

namespace whence::read {

CallColumns CallColumns::in(std::uint8_t* memory, std::size_t rows) noexcept {
  const auto take = [&]<class Value>(Value*& column) {
    column = reinterpret_cast<Value*>(memory);
    memory += rows * sizeof(Value);
  };
  CallColumns made;
  take(made.start), take(made.duration), take(made.own);
  take(made.number), take(made.parent), take(made.task), take(made.generator), take(made.count);
  take(made.depth), take(made.function), take(made.thread);
  take(made.entered), take(made.left);
  return made;
}

Next fill(CallReader& reader, Functions& functions, const CallColumns& columns, std::size_t most,
          std::size_t& rows) {
  Call call;
  for (rows = 0; rows < most; ++rows) {
    const Next next = reader.next(call);
    if (next != Next::record) return next;
    columns.start[rows] = call.start;
    columns.duration[rows] = call.duration;
    columns.own[rows] = call.own;
    columns.number[rows] = call.number;
    columns.parent[rows] = call.parent;
    columns.task[rows] = call.task;
    columns.generator[rows] = call.generator;
    columns.count[rows] = call.count;
    columns.depth[rows] = call.depth;
    columns.function[rows] = functions.of(call);
    columns.thread[rows] = call.thread;
    columns.entered[rows] = static_cast<std::uint8_t>(call.entered);
    columns.left[rows] = static_cast<std::uint8_t>(call.left);
  }
  return Next::record;
}

}  // namespace whence::read
