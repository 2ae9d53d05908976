// test_text.cpp: any text becomes bytes, and any bytes become valid JSON.
#include "base/text.h"
#include "check.h"

using namespace whence::base;

static std::string json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(all_widths_are_encoded) {
  const std::uint32_t points[] = {0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF};
  const UnicodeView view{points, 7, 4};
  std::string out(utf8_size(view), '\0');
  write_utf8(view, reinterpret_cast<std::uint8_t*>(out.data()));
  CHECK(out == "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
}

TEST(json_escapes_what_it_must) {
  CHECK(json("plain") == "\"plain\"");
  CHECK(json("q\" b\\ n\n") == "\"q\\\" b\\\\ n\\u000a\"");
  CHECK(json("</script>&") == "\"\\u003c/script\\u003e\\u0026\"");
  CHECK(json("\xE2\x80\xA8") == "\"\\u2028\"");
  CHECK(json("\xC3\xA4\xF0\x9F\x90\x8D") == "\"\xC3\xA4\xF0\x9F\x90\x8D\"");
  CHECK(json("\xED\xB2\x80") == "\"\\udc80\"");
}

TEST(bytes_that_are_not_utf8_become_replacement_characters) {
  const char* const bad = "\"\xEF\xBF\xBD\"";
  CHECK(json("\x80") == bad);
  CHECK(json("\xC0") == bad);
  CHECK(json("\xFF") == bad);
  CHECK(json("\xF8") == bad);
  CHECK(json("\xC1\x81") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");          // overlong
  CHECK(json("\xE2\x82") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");          // cut short
  CHECK(json("\xF4\x90\x80\x80").find('\x90') == std::string::npos);  // beyond the last code point
}
