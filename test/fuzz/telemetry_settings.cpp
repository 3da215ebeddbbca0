#include "telemetry/otlp_settings.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any value of any variable gives settings that can be used, none, or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string text(reinterpret_cast<const char*>(data), size);
    // A certificate store is read for each https:// endpoint, which is not what is tested.
    if (text.find("https") != std::string::npos) return 0;
    auto settings = telemetry::read_otlp_settings(
        [&](std::string_view) { return std::optional<std::string>(text); }, text);
    if (!settings) {
        if (settings.error().message().empty()) std::abort();
    } else if (*settings) {
        if ((*settings)->interval.count() <= 0 || (*settings)->timeout.count() <= 0) std::abort();
        for (const auto& [name, value] : (*settings)->headers) {
            if (name.empty() || value.find_first_of("\r\n") != std::string::npos) std::abort();
        }
    }
    (void)telemetry::read_attributes(text);
    return 0;
}
