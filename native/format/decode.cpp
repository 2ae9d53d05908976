// decode.cpp: see decode.h.
#include "format/decode.h"

#include <bit>

#include "base/varint.h"
#include "format/encode.h"
#include "format/kinds.h"
#include "format/records/span.h"
#include "format/records/thread.h"
#include "format/records/thread_tags.h"

namespace whence::format {

Step Decoder::next_slowly(Record& record) noexcept {
  if (next_ == end_) return Step::end;
  record.code = *next_;
  const KindInfo& info = kKinds[record.code];
  record.kind = info.kind;
  record.thread = thread_;
  record.bytes = {};
  const unsigned shape = shape_of(record.code);
  if (info.plain) [[likely]] {
    const std::uint8_t* after = read_fields(next_ + 1, end_, shape, record);
    if (after == nullptr) return Step::damaged;
    next_ = after;
    record.time = record.values[0] = deltas_.time += record.values[0];
    return Step::record;
  }
  const std::uint8_t* in = nullptr;
  std::size_t count = shape;
  if (shape == kBody) [[unlikely]] {
    in = read_body(next_ + 1, record, count);
  } else if (shape != 0) {  // nothing has no fields: zeros are damage, not records
    in = read_fields(next_ + 1, end_, shape, record);
  }
  if (in == nullptr) return Step::damaged;
  next_ = in;
  if (record.kind != nullptr) resolve(record, count);
  record.time = deltas_.time;
  take_over(record);
  return Step::record;
}

const std::uint8_t* Decoder::read_body(const std::uint8_t* in, Record& record,
                                       std::size_t& count) noexcept {
  std::uint64_t size;
  in = base::get_varint(in, end_, size);
  if (in == nullptr || size > static_cast<std::uint64_t>(end_ - in)) return nullptr;
  const std::uint8_t* body_end = in + size;
  count = record.kind != nullptr ? record.kind->count() - 1 : 0;
  in = read_fields(in, body_end, count, record);
  if (in == nullptr) return nullptr;
  record.bytes = {in, body_end};
  return body_end;
}

// Numbers as they are written.
const std::uint8_t* Decoder::read_fields(const std::uint8_t* in, const std::uint8_t* end,
                                         std::size_t count, Record& record) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (in != end && *in < 0x80) [[likely]] {
      record.values[i] = *in++;
      continue;
    }
    in = base::get_varint(in, end, record.values[i]);
    if (in == nullptr) return nullptr;
  }
  return in;
}

// Only once the whole record has been read: a damaged one changes nothing.
void Decoder::resolve(Record& record, std::size_t count) noexcept {
  const auto relative = [](std::uint64_t& last, std::uint64_t raw) {
    return last += static_cast<std::uint64_t>(base::unzigzag(raw));
  };
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t& value = record.values[i];
    switch (record.kind->fields[i].type) {
      case Field::time: value = deltas_.time += value; break;
      case Field::signed_: value = static_cast<std::uint64_t>(base::unzigzag(value)); break;
      case Field::span:
        value = deltas_.span + static_cast<std::uint64_t>(base::unzigzag(value));
        break;
      case Field::address: value = std::rotl(relative(deltas_.address, value), kAddressTurn); break;
      case Field::near_stack: value = relative(deltas_.stack, value); break;
      case Field::generator: value = relative(deltas_.generator, value); break;
      case Field::task: value = relative(deltas_.task, value); break;
      case Field::thread: value += value != 0 ? thread_base_ : 0; break;
      case Field::real: value = __builtin_bswap64(value); break;
      default: break;
    }
  }
}

void Decoder::take_over(const Record& record) noexcept {
  if (record.code == SpanBegin::kKind.code) {
    deltas_.span = record.values[1];
  } else if (record.code == Owner::kKind.code) {
    thread_ = static_cast<std::uint32_t>(record.values[1]);
    tags_ = 0;
    deltas_.start_over();
  } else if (record.code == ThreadTags::kKind.code) {
    tags_ = record.values[1];
  }
}

}  // namespace whence::format
