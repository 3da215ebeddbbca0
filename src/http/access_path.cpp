#include "http/access_path.hpp"

#include <algorithm>

namespace opensandbox::http {
namespace {

constexpr std::string_view kPrefix = "/.access/";

}  // namespace

std::string access_path(std::string_view token) {
    return std::string(kPrefix) + std::string(token);
}

std::string take_access_path(std::string& target) {
    if (!target.starts_with(kPrefix)) return {};
    std::size_t end = target.find_first_of("/?", kPrefix.size());
    std::size_t stop = end == std::string::npos ? target.size() : end;
    std::string token = target.substr(kPrefix.size(), stop - kPrefix.size());
    if (token.empty()) return {};
    target.erase(0, stop);
    if (!target.starts_with('/')) target.insert(0, 1, '/');
    return token;
}

std::string without_access_tokens(std::string_view path) {
    std::string shown;
    for (std::size_t at = path.find(kPrefix); at != std::string_view::npos;
         at = path.find(kPrefix)) {
        std::size_t end = std::min(path.find_first_of("/?", at + kPrefix.size()), path.size());
        shown += path.substr(0, at + kPrefix.size());
        if (end > at + kPrefix.size()) shown += "***";
        path.remove_prefix(end);
    }
    return shown += path;
}

}  // namespace opensandbox::http
