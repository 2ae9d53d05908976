// native.h: native frames, as metadata: the modules they are in, stacks that end in one, and names.
//
// Threads: any; only arguments are touched. Allocates: never. Fails by: it cannot.
#pragma once

#include "format/encode.h"

namespace whence::format {

// A file that code was loaded from. The build id is in hexadecimal digits, or nothing.
struct Module {
  static constexpr Kind kKind{
      0x73,
      "module",
      false,
      {{{"id", Field::number}, {"path", Field::string}, {"build_id", Field::string}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t id, std::uint64_t path,
                              std::uint64_t build_id) noexcept {
    *out++ = kKind.code;
    out = put_varint(out, id);
    out = put_varint(out, path);
    return put_varint(out, build_id);
  }
};

// As `stack`, with a native frame: an address in the file of a module. Module 0 is no frame, but a
// remark, by number.
struct NativeStack {
  static constexpr Kind kKind{0x87,
                              "native_stack",
                              false,
                              {{{"id", Field::stack},
                                {"parent", Field::stack},
                                {"module", Field::number},
                                {"address", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t id, std::uint64_t parent,
                              std::uint64_t module, std::uint64_t address) noexcept {
    *out++ = kKind.code;
    out = put_varint(out, id);
    out = put_varint(out, parent);
    out = put_varint(out, module);
    return put_varint(out, address);
  }
};

// As `stack`, with the Python frames of one run of the evaluation loop: those of the stack `python`
// that are not in the next such record further out.
struct PythonRun {
  static constexpr Kind kKind{
      0x74,
      "python_run",
      false,
      {{{"id", Field::stack}, {"parent", Field::stack}, {"python", Field::stack}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t id, std::uint64_t parent,
                              std::uint64_t python) noexcept {
    *out++ = kKind.code;
    out = put_varint(out, id);
    out = put_varint(out, parent);
    return put_varint(out, python);
  }
};

// What is at an address: the function, its file and line; a line of 0 is not known. Several of the
// same address are functions inlined into one another, innermost first.
struct Symbol {
  static constexpr Kind kKind{0xA7,
                              "symbol",
                              false,
                              {{{"module", Field::number},
                                {"address", Field::number},
                                {"name", Field::string},
                                {"filename", Field::string},
                                {"line", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t module, std::uint64_t address,
                              std::uint64_t name, std::uint64_t filename,
                              std::uint64_t line) noexcept {
    *out++ = kKind.code;
    out = put_varint(out, module);
    out = put_varint(out, address);
    out = put_varint(out, name);
    out = put_varint(out, filename);
    return put_varint(out, line);
  }
};

// What was said of addresses before is said anew, or not at all: somebody has looked again.
struct SymbolsAnew {
  static constexpr Kind kKind{0x2B, "symbols_anew", false, {{{"reserved", Field::number}}}};

  static std::uint8_t* encode(std::uint8_t* out, std::uint64_t reserved) noexcept {
    *out++ = kKind.code;
    return put_varint(out, reserved);
  }
};

}  // namespace whence::format
