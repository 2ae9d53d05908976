// recent_addresses.h: a payload in which addresses that came lately are small numbers.
//
// Threads: any; only arguments are touched. Allocates: never.
// Fails by: 0 from recode(), whose payload is then packed as it is; false from restore().
//
// Allocators hand out again what was given back last, so the address of an event is mostly one of
// the few before it. Which of them, it says in the same way each time round a loop, while addresses
// and their differences are others: that is what a packer can do something with.
//
//      addresses      A        B        A      C        B        A
//      recoded     delta+16 delta+16    1   delta+16    2        2     0 would be "the one before"
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace whence::format {

// Writes `payload` to `out`, which is as large. How many bytes that took; 0 if there are no
// addresses in it, it would not be smaller, or it is not written as a recorder would.
[[nodiscard]] std::size_t recode(std::span<const std::uint8_t> payload,
                                 std::span<std::uint8_t> out) noexcept;

// The opposite, for any bytes. False if they do not fill `out` exactly.
[[nodiscard]] bool restore(std::span<const std::uint8_t> recoded,
                           std::span<std::uint8_t> out) noexcept;

// The same for the beginning of a recoded payload. How many bytes its whole records took.
[[nodiscard]] std::size_t restore_beginning(std::span<const std::uint8_t> recoded,
                                            std::span<std::uint8_t> out) noexcept;

}  // namespace whence::format
