// test_format.cpp: numbers, checksums, headers and every kind of record, there and back.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "base/varint.h"
#include "check.h"
#include "format/chunk.h"
#include "format/decode.h"
#include "format/encode.h"
#include "format/file.h"
#include "format/kinds.h"
#include "format/records/call.h"
#include "format/records/counter.h"
#include "format/records/memory.h"
#include "format/records/pool.h"
#include "format/records/span.h"
#include "format/records/string.h"
#include "format/records/task.h"
#include "format/records/thread.h"
#include "format/tags.h"

using namespace whence;
using namespace whence::format;
using Bytes = std::vector<std::uint8_t>;

TEST(numbers_of_every_size_come_back) {
  for (unsigned bits = 0; bits <= 64; ++bits) {
    for (const int offset : {-1, 0, 1}) {
      const std::uint64_t edge = bits == 64 ? 0 : std::uint64_t{1} << bits;
      const std::uint64_t value = edge + static_cast<std::uint64_t>(offset);
      std::uint8_t buffer[base::kLongestVarint];
      const std::uint8_t* end = base::put_varint(buffer, value);
      CHECK(static_cast<std::size_t>(end - buffer) == varint_size(value));
      std::uint64_t back = ~value;
      CHECK(base::get_varint(buffer, end, back) == end);
      CHECK(back == value);
      for (const std::uint8_t* cut = buffer; cut != end; ++cut) {
        CHECK(base::get_varint(buffer, cut, back) == nullptr);
      }
    }
  }
}

TEST(numbers_beyond_64_bits_are_refused) {
  const auto read = [](const Bytes& bytes) {
    std::uint64_t value;
    return base::get_varint(bytes.data(), bytes.data() + bytes.size(), value) != nullptr;
  };
  Bytes nine(9, 0xFF);
  Bytes largest = nine, too_large = nine, too_long = nine;
  largest.push_back(0x01);
  too_large.push_back(0x02);
  too_long.push_back(0x81);
  too_long.push_back(0x00);
  CHECK(read(largest));
  CHECK(!read(too_large));
  CHECK(!read(too_long));
  CHECK(read({0x80, 0x00}));  // longer than it needs to be, and still 0
}

TEST(zigzag_keeps_small_numbers_small) {
  CHECK(base::zigzag(0) == 0 && base::zigzag(-1) == 1 && base::zigzag(1) == 2);
  CHECK(base::zigzag(-2) == 3);
  for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-7},
                                   std::numeric_limits<std::int64_t>::max()}) {
    CHECK(base::unzigzag(base::zigzag(value)) == value);
  }
}

TEST(checksums_are_crc_32c) {
  // From RFC 3720, B.4.
  const Bytes zeros(32, 0), ones(32, 0xFF);
  Bytes rising(32);
  for (std::size_t i = 0; i < 32; ++i) rising[i] = static_cast<std::uint8_t>(i);
  CHECK(base::checksum(zeros.data(), 32) == 0x8A9136AA);
  CHECK(base::checksum(ones.data(), 32) == 0x62A8AB43);
  CHECK(base::checksum(rising.data(), 32) == 0x46DD794E);
  CHECK(base::checksum("123456789", 9) == 0xE3069283);
  for (std::size_t cut = 0; cut <= 32; ++cut) {
    const std::uint32_t first = base::checksum(rising.data(), cut);
    CHECK(base::checksum(rising.data() + cut, 32 - cut, first) == 0x46DD794E);
  }
}

// Long runs are taken in lanes; pieces of 100 bytes never are.
TEST(checksums_of_long_runs_are_those_of_their_pieces) {
  std::vector<std::uint8_t> bytes(20'000);
  std::uint32_t random = 1;
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>((random *= 69069) >> 24);
  for (std::size_t size = 0; size <= bytes.size(); size += 1 + size / 7) {
    for (const std::size_t begin : {std::size_t{0}, std::size_t{1}, std::size_t{7}}) {
      const std::size_t end = std::min(begin + size, bytes.size());
      std::uint32_t pieces = 0;
      for (std::size_t at = begin; at < end; at += 100) {
        pieces = base::checksum(&bytes[at], std::min<std::size_t>(100, end - at), pieces);
      }
      CHECK(base::checksum(&bytes[begin], end - begin) == pieces);
    }
  }
}

TEST(reals_come_back_bit_by_bit) {
  for (const double value : {0.0, -0.0, 1.0, 0.1, -1e300, 5e-324}) {
    const double back = bits_to_real(real_to_bits(value));
    CHECK(std::memcmp(&back, &value, sizeof value) == 0);
  }
  CHECK(varint_size(real_to_bits(1.0)) <= 3);  // what reversing the bytes is for
}

static std::uint64_t value_for(std::size_t field) {
  return 1000 + field;
}

// A record of any kind, every field but bytes as a number of its own.
static Bytes encode(const Kind& kind) {
  Bytes fields;
  std::uint8_t buffer[base::kLongestVarint];
  for (std::size_t i = 0; i < kind.count(); ++i) {
    if (kind.fields[i].type == Field::bytes) continue;
    fields.insert(fields.end(), buffer, base::put_varint(buffer, value_for(i)));
  }
  Bytes out = {kind.code};
  if (shape_of(kind.code) == kBody) {
    const std::string_view tail = "bytes";
    fields.insert(fields.end(), tail.begin(), tail.end());
    out.insert(out.end(), buffer, base::put_varint(buffer, fields.size()));
  }
  out.insert(out.end(), fields.begin(), fields.end());
  return out;
}

TEST(every_kind_is_decoded_and_no_part_of_it_is_a_record) {
  CHECK(all_kinds().size() == 86);
  for (const Kind* kind : all_kinds()) {
    const Bytes bytes = encode(*kind);
    Decoder decoder(bytes, 7, 50);
    Record record;
    CHECK(decoder.next(record) == Step::record);
    CHECK(record.kind == kind && record.code == kind->code && record.thread == 7);
    for (std::size_t i = 0; i < kind->count(); ++i) {
      const Field type = kind->fields[i].type;
      if (type == Field::time) CHECK(record.values[i] == 50 + value_for(i));
      if (type == Field::number) CHECK(record.values[i] == value_for(i));
      if (type == Field::bytes) CHECK(record.bytes.size() == 5);
    }
    CHECK(decoder.next(record) == Step::end);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      Decoder short_of_it({bytes.data(), cut}, 7, 50);
      CHECK(short_of_it.next(record) == Step::damaged);
      CHECK(short_of_it.position() == bytes.data());
    }
  }
}

TEST(kinds_that_are_not_known_are_stepped_over) {
  for (unsigned code = 0; code < 256; ++code) {
    if (kind_of(static_cast<std::uint8_t>(code)) != nullptr) continue;
    const unsigned shape = code >> 5;
    Bytes bytes = {static_cast<std::uint8_t>(code)};
    if (shape == kBody) bytes.push_back(6);
    for (unsigned i = 0; i < (shape == kBody ? 6 : shape); ++i) bytes.push_back(0x7F);
    const Bytes mark = {0x43, 0x05, 0x01};
    bytes.insert(bytes.end(), mark.begin(), mark.end());
    Decoder decoder(bytes, 1, 0);
    Record record;
    if (shape == 0) {
      CHECK(decoder.next(record) == Step::damaged);
      continue;
    }
    CHECK(decoder.next(record) == Step::record && record.kind == nullptr);
    CHECK(decoder.next(record) == Step::record && record.code == 0x43 && record.time == 5);
  }
}

TEST(deltas_are_what_the_encoder_meant) {
  Bytes bytes(256);
  Deltas deltas{100, 0, 0, 0};
  std::uint8_t* out = bytes.data();
  out = SpanBegin::encode(out, deltas, 110, 500, 1);
  out = SpanBegin::encode(out, deltas, 105, 501, 1);  // a clock that goes back stands still
  out = SpanEnd::encode(out, deltas, 120, 501, 1, 10);
  out = Resume::encode(out, deltas, 125, 8, 1'000);
  out = Resume::encode(out, deltas, 125, 8, 998);
  out = Awaits::encode(out, deltas, 126, 40, 41);
  out = ObjAllocated::encode(out, deltas, 127, 0x7FFF00001238, 64, 12);
  out = Freed::encode(out, deltas, 128, 0x7FFF00001230);
  out = Owner::encode(out, deltas, 130, 9, 77);
  out = Awaits::encode(out, deltas, 131, 40, 41);
  out = ObjMoved::encode(out, deltas, 132, ~std::uint64_t{0}, 64, 11);
  out = Resume::encode(out, deltas, 135, 8, 3);
  out = SpanEndAway::encode(out, deltas, 140, 3, 500, 1, 30, true);
  out = Counter::encode(out, deltas, 150, 1, -5);
  bytes.resize(static_cast<std::size_t>(out - bytes.data()));
  Decoder decoder(bytes, 3, 100);
  Record record;
  const auto next = [&] { return decoder.next(record) == Step::record; };
  CHECK(next() && record.time == 110 && record.values[1] == 500);
  CHECK(next() && record.time == 110 && record.values[1] == 501);
  CHECK(next() && record.time == 120 && record.values[1] == 501 && record.values[3] == 10);
  CHECK(next() && record.values[1] == 8 && record.values[2] == 1'000);
  CHECK(next() && record.values[2] == 998);
  CHECK(next() && record.values[1] == 40 && record.values[2] == 41);
  CHECK(next() && record.values[1] == 0x7FFF00001238 && record.values[3] == 12);
  CHECK(next() && record.values[1] == 0x7FFF00001230);
  CHECK(next() && record.thread == 3 && decoder.thread() == 9);
  CHECK(next() && record.values[1] == 40 && record.values[2] == 41);
  CHECK(next() && record.values[1] == ~std::uint64_t{0} && record.values[3] == 11);
  CHECK(next() && record.thread == 9 && record.values[2] == 3);
  CHECK(next() && record.thread == 9 && record.values[2] == 500 && record.values[5] == 1);
  CHECK(next() && static_cast<std::int64_t>(record.values[2]) == -5);
  CHECK(decoder.next(record) == Step::end);
}

TEST(tags_come_back_and_end_where_they_are_damaged) {
  Bytes bytes(512);
  const Bytes text = {'a', 'b'};
  const Tag tags[] = {{1, TagType::none, 0, 0, {}},   {2, TagType::no, 0, 0, {}},
                      {3, TagType::yes, 0, 0, {}},    {4, TagType::integer, -9, 0, {}},
                      {5, TagType::real, 0, 2.5, {}}, {6, TagType::text, 0, 0, text},
                      {7, TagType::other, 0, 0, text}};
  std::uint8_t* out = bytes.data();
  std::vector<std::size_t> ends;
  for (const Tag& tag : tags) {
    out = put_tag(out, tag);
    ends.push_back(static_cast<std::size_t>(out - bytes.data()));
  }
  bytes.resize(ends.back());
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    TagReader reader({bytes.data(), cut});
    Tag tag;
    std::size_t count = 0;
    while (reader.next(tag)) {
      CHECK(tag.key == tags[count].key && tag.type == tags[count].type);
      CHECK(tag.integer == tags[count].integer && tag.text.size() == tags[count].text.size());
      ++count;
    }
    const bool at_an_end = cut == 0 || ends[count == 0 ? 0 : count - 1] == cut;
    CHECK(reader.damaged() != at_an_end);
  }
}

TEST(headers_notice_every_flipped_bit) {
  FileHeader file{};
  file.magic = kMagic;
  file.major = kMajor;
  file.header_size = 4096;
  file.chunk_size = kDefaultChunk;
  file.ticks_per_second = 1;
  file.state = FileState::closed;
  seal_opening(file);
  seal_closing(file);
  CHECK(check_header(file) == HeaderCheck::good && closing_is_good(file));
  for (std::size_t bit = 0; bit < 8 * sizeof file; ++bit) {
    FileHeader copy = file;
    reinterpret_cast<std::uint8_t*>(&copy)[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    CHECK(check_header(copy) != HeaderCheck::good || !closing_is_good(copy));
  }
  ChunkHeader chunk{};
  chunk.magic = kChunkMagic;
  chunk.sequence = 1;
  seal_opening(chunk);
  seal_closing(chunk);
  chunk.state = static_cast<std::uint32_t>(ChunkState::sealed);
  CHECK(opening_is_good(chunk, 0) && closing_is_good(chunk));
  for (std::size_t bit = 0; bit < 8 * sizeof chunk; ++bit) {
    if (bit / 8 >= 4 && bit / 8 < 8) continue;  // the state, which readers check by itself
    ChunkHeader copy = chunk;
    reinterpret_cast<std::uint8_t*>(&copy)[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    CHECK(!opening_is_good(copy, 0) || !closing_is_good(copy));
  }
}
