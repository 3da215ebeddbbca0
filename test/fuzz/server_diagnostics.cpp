#include "server/diagnostics/pages.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace opensandbox::server;

/// Queries of clients, and what a sandbox wrote.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    for (auto page : {diagnostics::Page::logs, diagnostics::Page::events,
                      diagnostics::Page::inspect, diagnostics::Page::summary}) {
        auto parsed = diagnostics::parse_parameters(page, text);
        const auto* parameters = std::get_if<diagnostics::Parameters>(&parsed);
        if (parameters && (parameters->tail < 1 || parameters->tail > 10000)) std::abort();
    }
    for (std::size_t count : {1U, 3U}) {
        auto cut = diagnostics::last_lines(text, count);
        if (!text.ends_with(cut.text) || cut.truncated != (cut.text.size() < text.size())) {
            std::abort();
        }
    }
    if (diagnostics::shown_value("TOKEN", text) != "***") std::abort();
    (void)diagnostics::shown_value("URL", text);
    return 0;
}
