#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <span>

namespace opensandbox {

/// Whether all bytes are zero; true of none.
bool is_zero(std::span<const char> bytes);

/// How many of the bytes do not lie in long runs of zeros: what they cost on a disk that keeps
/// holes.
std::uint64_t costly_bytes(std::span<const char> bytes);

/// Writes bytes to a place of a file that nothing was written to yet; long runs of zeros become
/// holes. Returns where the last byte ends that was written, 0 when none was: the caller sets the
/// file's size when that is greater.
Result<std::uint64_t> write_sparsely(int fd, std::span<const char> bytes, std::uint64_t offset);

}  // namespace opensandbox
