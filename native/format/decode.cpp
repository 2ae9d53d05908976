// decode.cpp: see decode.h.
#include "format/decode.h"

#include "base/varint.h"
#include "format/encode.h"
#include "format/kinds.h"
#include "format/records/span.h"
#include "format/records/thread.h"

namespace whence::format {

Step Decoder::next(Record& record) noexcept {
  if (next_ == end_) return Step::end;
  record.code = *next_;
  record.kind = kind_of(record.code);
  record.thread = thread_;
  record.bytes = {};
  const Deltas before = deltas_;
  const unsigned shape = shape_of(record.code);
  const std::uint8_t* in = nullptr;
  if (shape == kBody) {
    in = read_body(next_ + 1, record);
  } else if (shape != 0) {  // nothing has no fields: zeros are damage, not records
    in = read_fields(next_ + 1, end_, shape, record);
  }
  if (in == nullptr) {
    deltas_ = before;
    return Step::damaged;
  }
  next_ = in;
  record.time = deltas_.time;
  take_over(record);
  return Step::record;
}

const std::uint8_t* Decoder::read_body(const std::uint8_t* in, Record& record) noexcept {
  std::uint64_t size;
  in = base::get_varint(in, end_, size);
  if (in == nullptr || size > static_cast<std::uint64_t>(end_ - in)) return nullptr;
  const std::uint8_t* body_end = in + size;
  const std::size_t numbers = record.kind != nullptr ? record.kind->count() - 1 : 0;
  in = read_fields(in, body_end, numbers, record);
  if (in == nullptr) return nullptr;
  record.bytes = {in, body_end};
  return body_end;
}

const std::uint8_t* Decoder::read_fields(const std::uint8_t* in, const std::uint8_t* end,
                                         std::size_t count, Record& record) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t raw;
    in = base::get_varint(in, end, raw);
    if (in == nullptr) return nullptr;
    record.values[i] = record.kind != nullptr ? resolve(record.kind->fields[i].type, raw) : raw;
  }
  return in;
}

std::uint64_t Decoder::resolve(Field type, std::uint64_t raw) noexcept {
  switch (type) {
    case Field::time: return deltas_.time += raw;
    case Field::signed_: return static_cast<std::uint64_t>(base::unzigzag(raw));
    case Field::span: return deltas_.span + static_cast<std::uint64_t>(base::unzigzag(raw));
    case Field::address: return deltas_.address += static_cast<std::uint64_t>(base::unzigzag(raw));
    case Field::generator:
      return deltas_.generator += static_cast<std::uint64_t>(base::unzigzag(raw));
    case Field::task: return deltas_.task += static_cast<std::uint64_t>(base::unzigzag(raw));
    case Field::real: return __builtin_bswap64(raw);
    default: return raw;
  }
}

void Decoder::take_over(const Record& record) noexcept {
  if (record.code == SpanBegin::kKind.code) {
    deltas_.span = record.values[1];
  } else if (record.code == Owner::kKind.code) {
    thread_ = static_cast<std::uint32_t>(record.values[1]);
    deltas_.span = deltas_.address = deltas_.generator = deltas_.task = 0;
  }
}

}  // namespace whence::format
