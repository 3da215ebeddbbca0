#include "http/sdk_agent.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <tuple>

namespace opensandbox::http {
namespace {

constexpr std::string_view kProduct = "OpenSandbox-";
constexpr std::string_view kSuffix = "-SDK/";
constexpr std::size_t kLongest = 32;

/// Reads "1.2.3…" as far as it goes. The number of parts read.
std::size_t read_numbers(std::string_view text, std::array<std::uint32_t, 3>& numbers) {
    const char* at = text.data();
    const char* end = at + text.size();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        auto [stop, failure] = std::from_chars(at, end, numbers[i]);
        if (failure != std::errc()) {
            numbers[i] = 0;
            return i;
        }
        if (stop == end || *stop != '.') return i + 1;
        at = stop + 1;
    }
    return numbers.size();
}

}  // namespace

bool SdkAgent::older_than(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return numbered && std::tie(major, minor, patch) < std::tie(a, b, c);
}

std::optional<SdkAgent> parse_sdk_agent(std::string_view user_agent) {
    if (!user_agent.starts_with(kProduct)) return std::nullopt;
    user_agent.remove_prefix(kProduct.size());
    auto end = user_agent.find(kSuffix);
    if (end == std::string_view::npos || end == 0 || end > kLongest) return std::nullopt;
    SdkAgent agent;
    for (char c : user_agent.substr(0, end))
        agent.language += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::string_view version = user_agent.substr(end + kSuffix.size());
    version = version.substr(0, version.find(' '));
    if (version.size() <= kLongest) agent.version = version;
    std::array<std::uint32_t, 3> numbers{};
    agent.numbered = read_numbers(version, numbers) >= 2;
    if (agent.numbered) std::tie(agent.major, agent.minor, agent.patch) = std::tuple_cat(numbers);
    return agent;
}

}  // namespace opensandbox::http
