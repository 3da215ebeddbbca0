#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::http {

/// Which published client sent a request: it names itself "OpenSandbox-<Language>-SDK/<version>".
struct SdkAgent {
    std::string language;  ///< lower case, at most 32 characters
    std::string version;   ///< as sent, at most 32 characters; empty when there is none
    std::uint32_t major = 0;
    std::uint32_t minor = 0;
    std::uint32_t patch = 0;
    /// Whether major and minor could be read; a patch that could not counts as 0.
    bool numbered = false;

    /// A version that cannot be read is not older than any.
    [[nodiscard]] bool older_than(std::uint32_t major, std::uint32_t minor,
                                  std::uint32_t patch) const;
};

/// From the value of User-Agent; empty for other clients.
std::optional<SdkAgent> parse_sdk_agent(std::string_view user_agent);

}  // namespace opensandbox::http
