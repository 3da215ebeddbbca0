#include "runtime/native/network/link_counters.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"

#include <charconv>
#include <fstream>
#include <sstream>

namespace opensandbox::runtime::native {

namespace {

std::optional<std::uint64_t> read_counter(const std::string& path) {
    auto text = read_file(path);
    if (!text) return std::nullopt;
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc{}) return std::nullopt;
    return value;
}

/// sysfs shows the namespace that it was mounted in, this file the reader's.
LinkCounters counters_of_own_namespace(const std::string& link) {
    std::ifstream lines("/proc/self/net/dev");
    for (std::string line; std::getline(lines, line);) {
        const auto colon = line.find(':');
        const auto begin = line.find_first_not_of(' ');
        if (colon == std::string::npos || line.substr(begin, colon - begin) != link) continue;
        std::istringstream words(line.substr(colon + 1));
        std::uint64_t received = 0, other = 0, sent = 0;
        words >> received;
        for (int field = 0; field < 7; ++field)
            words >> other;
        words >> sent;
        if (words) return {sent, received};
    }
    return {};
}

}  // namespace

LinkCounters link_counters(const std::string& link) {
    const std::string base = "/sys/class/net/" + link + "/statistics/";
    // What the host sends, the sandbox receives.
    const LinkCounters found{read_counter(base + "tx_bytes"), read_counter(base + "rx_bytes")};
    return found.received ? found : counters_of_own_namespace(link);
}

}  // namespace opensandbox::runtime::native
