#include "runtime/native/network/link_counters.hpp"

#include "runtime/native/kernel/kernel.hpp"

#include <charconv>

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

}  // namespace

LinkCounters link_counters(const std::string& link) {
    const std::string base = "/sys/class/net/" + link + "/statistics/";
    // What the host sends, the sandbox receives.
    return {read_counter(base + "tx_bytes"), read_counter(base + "rx_bytes")};
}

}  // namespace opensandbox::runtime::native
