#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace opensandbox {

/// Fills `size` bytes from the kernel's random source; aborts when there is none.
void random_bytes(void* out, std::size_t size);

/// A random UUID (version 4) with hyphens: sandbox, session and snapshot ids.
std::string new_uuid();

/// 32 lower-case hex digits: request ids, command ids.
std::string new_hex_id();

/// Ids like new_hex_id()'s, many for one system call: for what is asked for all the time and is no
/// secret. Not to be used on both sides of a fork.
class HexIds {
  public:
    std::string next();

  private:
    static constexpr std::size_t kBytes = 16;
    unsigned char drawn_[64 * kBytes];
    std::size_t used_ = sizeof drawn_;
};

/// 24 random bytes in URL-safe base64 without padding: 32 characters. Access tokens, API keys.
std::string new_token();

/// 8-4-4-4-12 hex digits.
bool is_uuid(std::string_view text);

/// Compares in time that depends on the lengths only.
bool equal_constant_time(std::string_view a, std::string_view b);

}  // namespace opensandbox
