#include "agent/files/glob.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// The first line is the pattern, the rest a name. A pattern and its negation never agree.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    std::size_t end = text.find('\n');
    std::string_view pattern = text.substr(0, end);
    std::string_view name = end == std::string_view::npos ? "" : text.substr(end + 1);
    auto glob = opensandbox::agent::Glob::compile(pattern);
    if (!glob) return 0;
    bool found = glob->matches(name.substr(0, 255));
    if (pattern.empty() || pattern.front() == '!' || pattern.size() > 4000) return 0;
    auto negated = opensandbox::agent::Glob::compile("!" + std::string(pattern));
    if (!negated || negated->matches(name.substr(0, 255)) == found) std::abort();
    return 0;
}
