#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The protocol of Redis, version 2, as far as lists, hashes and scripts need it. Pure.
namespace opensandbox::redis::resp {

enum class Kind : std::uint8_t { simple, error, integer, bulk, null, array };

/// One reply.
struct Value {
    Value() = default;
    explicit Value(Kind k, std::string t = {}) : kind(k), text(std::move(t)) {}
    Kind kind = Kind::null;
    std::string text;         ///< of simple, error and bulk
    std::int64_t number = 0;  ///< of integer
    std::vector<Value> items;
};

/// A command: an array of bulk texts.
std::string command(const std::vector<std::string_view>& words);

/// Limits on what a server may send.
inline constexpr std::size_t kMaxBulk = 1 << 20;
inline constexpr std::size_t kMaxLine = 64 * 1024;
inline constexpr std::size_t kMaxItems = std::size_t{1} << 18;
inline constexpr int kMaxDepth = 4;

/// One reply at the front of what was received, and how many bytes it took.
struct Parsed {
    Value value;
    std::size_t used = 0;
};
/// Empty while bytes are missing; `protocol` for what no reply begins with, and past a limit.
Result<std::optional<Parsed>> parse(std::string_view received);

}  // namespace opensandbox::redis::resp
