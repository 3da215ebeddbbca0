// What registries and token servers say: challenges, tokens, errors, ranges, Docker's login file.
#include "registry/authentication.hpp"
#include "registry/blobs.hpp"
#include "registry/docker_config.hpp"
#include "registry/location.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace registry = opensandbox::registry;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 6) {
        case 0:
            if (auto challenges = registry::parse_challenges(text)) {
                for (const auto& challenge : *challenges) {
                    if (challenge.scheme.empty() || challenge.parameters.size() > 32) std::abort();
                }
            }
            break;
        case 1:
            if (auto token = registry::parse_token(text)) {
                if (token->value.find_first_of("\r\n ") != std::string::npos) std::abort();
            }
            break;
        case 2: (void)registry::find_docker_login(text, "registry.example:5000"); break;
        case 3: (void)registry::parse_program_answer(text); break;
        case 4:
            (void)registry::reason_in(text);
            (void)registry::range_start(text);
            (void)registry::uploaded_bytes(text);
            break;
        default:
            if (auto location = registry::locate_registry(text)) {
                if (location->host.empty()) std::abort();
            }
    }
    return 0;
}
