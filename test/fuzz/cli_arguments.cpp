#include "cli/copy_place.hpp"
#include "cli/duration.hpp"
#include "cli/port_mapping.hpp"
#include "cli/remote_shell.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

/// Any text is an argument or none; what a sandbox says about its files stays below the directory
/// that was asked for; and keystrokes are the same in pieces of any size.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox::cli;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    if (auto duration = parse_duration_text(text)) {
        if (duration->count() <= 0) std::abort();
    }
    if (auto mapping = parse_port_mapping(text)) {
        if (mapping->remote == 0) std::abort();
    }
    if (auto place = parse_copy_place(text)) {
        if (place->path.empty()) std::abort();
    }
    if (auto below = path_below("/a", text)) {
        if (below->starts_with('/') || ("/" + *below + "/").find("/../") != std::string::npos)
            std::abort();
    }
    EscapeFilter whole;
    EscapeFilter pieces;
    auto all = whole.feed(text);
    EscapeFilter::Keys parts;
    for (std::size_t i = 0; i < text.size() && !parts.detach; ++i) {
        auto keys = pieces.feed(text.substr(i, 1));
        parts.send += keys.send;
        parts.detach = keys.detach;
    }
    if (all.detach != parts.detach || all.send != parts.send) std::abort();
    return 0;
}
