// tags.cpp: see tags.h.
#include "format/tags.h"

#include <bit>
#include <cstring>

#include "base/varint.h"

namespace whence::format {

std::uint8_t* put_tag(std::uint8_t* out, const Tag& tag) noexcept {
  out = put_varint(out, tag.key);
  *out++ = static_cast<std::uint8_t>(tag.type);
  switch (tag.type) {
    case TagType::integer: return put_varint(out, base::zigzag(tag.integer));
    case TagType::real: std::memcpy(out, &tag.real, sizeof tag.real); return out + sizeof tag.real;
    case TagType::text:
    case TagType::other:
      out = put_varint(out, tag.text.size());
      if (!tag.text.empty()) std::memcpy(out, tag.text.data(), tag.text.size());
      return out + tag.text.size();
    default: return out;
  }
}

bool TagReader::next(Tag& tag) noexcept {
  tag = {};
  const std::uint8_t* in = base::get_varint(next_, end_, tag.key);
  if (in == nullptr || in == end_) return false;
  tag.type = static_cast<TagType>(*in++);
  std::uint64_t number = 0;
  switch (tag.type) {
    case TagType::none:
    case TagType::no:
    case TagType::yes: break;
    case TagType::integer:
      in = base::get_varint(in, end_, number);
      if (in == nullptr) return false;
      tag.integer = base::unzigzag(number);
      break;
    case TagType::real:
      if (end_ - in < 8) return false;
      std::memcpy(&tag.real, in, sizeof tag.real);
      in += sizeof tag.real;
      break;
    case TagType::text:
    case TagType::other:
      in = base::get_varint(in, end_, number);
      if (in == nullptr || number > static_cast<std::uint64_t>(end_ - in)) return false;
      tag.text = {in, static_cast<std::size_t>(number)};
      in += number;
      break;
    default: return false;
  }
  next_ = in;
  return true;
}

}  // namespace whence::format
