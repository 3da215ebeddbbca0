#pragma once

#include "model/field_error.hpp"
#include "model/json_text.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace opensandbox::model {

/// Most copies that one request makes.
inline constexpr std::int64_t kMostForks = 100;

/// How long copies of a sandbox live.
enum class ForkLife : std::uint8_t {
    as_source,  ///< as long as what they are copies of
    timeout,    ///< so many seconds
    unlimited,  ///< removed by hand only
};

/// POST /sandboxes/{id}/fork. What is not given is as in the sandbox that is copied.
struct ForkRequest {
    std::int64_t count = 1;
    ForkLife life = ForkLife::as_source;
    std::int64_t timeout_seconds = 0;  ///< 60 or more, with ForkLife::timeout
    StringMap metadata;                ///< over the source's
    StringMap env;                     ///< over the source's
    std::vector<std::string> entrypoint;
};

/// The body may be empty or null.
std::variant<ForkRequest, FieldErrors> parse_fork_request(std::string_view body);

}  // namespace opensandbox::model
