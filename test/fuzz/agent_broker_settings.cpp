#include "agent/isolated/broker_settings.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// What an agent, which the code in its sandbox may have taken over, tells the broker of its
/// isolated sessions: what is taken can be written down and read again, and names are names.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    const auto settings = agent::parse_broker_settings({reinterpret_cast<const char*>(data), size});
    if (!settings) return 0;
    for (const auto& [name, value] : settings->environment) {
        if (name.empty() || name.find('=') != std::string::npos) std::abort();
        if ((name + value).find('\0') != std::string::npos) std::abort();
    }
    const auto again = agent::parse_broker_settings(agent::encode(*settings));
    if (!again || again->uid != settings->uid || again->environment != settings->environment) {
        std::abort();
    }
    return 0;
}
