#include "http/router.hpp"

#include <algorithm>
#include <compare>

namespace opensandbox::http {
namespace {

bool is_parameter(std::string_view segment) {
    return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

bool is_rest(std::string_view segment) {
    return is_parameter(segment) && segment.size() > 5 &&
           segment.substr(segment.size() - 4) == "...}";
}

/// The segments between slashes of a path that begins with one; "/" has one empty segment.
template <class String>
std::vector<String> split(std::string_view path) {
    std::vector<String> segments;
    if (!path.empty() && path.front() == '/') path.remove_prefix(1);
    while (true) {
        auto slash = path.find('/');
        segments.emplace_back(path.substr(0, slash));
        if (slash == std::string_view::npos) return segments;
        path.remove_prefix(slash + 1);
    }
}

bool same_segment(std::string_view literal, std::string_view raw) {
    if (literal == raw) return true;
    if (raw.find('%') == std::string_view::npos) return false;
    auto decoded = percent_decode(raw);
    return decoded && *decoded == literal;
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string_view>& path) {
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (is_rest(pattern[i])) return true;
        if (i >= path.size()) return false;
        if (is_parameter(pattern[i]) ? path[i].empty() : !same_segment(pattern[i], path[i])) {
            return false;
        }
    }
    return pattern.size() == path.size();
}

/// How closely a segment of a pattern names what it matches.
int rank(std::string_view segment) {
    return is_rest(segment) ? 0 : is_parameter(segment) ? 1 : 2;
}

/// Whether `a` is the closer of two patterns that match the same path: the first segment where
/// they differ in kind decides.
bool closer(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    auto by_rank = [](std::string_view x, std::string_view y) { return rank(x) < rank(y); };
    return std::lexicographical_compare(b.begin(), b.end(), a.begin(), a.end(), by_rank);
}

using Parameters = std::vector<std::pair<std::string, std::string>>;

Parameters bind_parameters(const std::vector<std::string>& pattern,
                           const std::vector<std::string_view>& path, std::string_view raw_path) {
    Parameters bound;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        std::string_view segment = pattern[i];
        if (is_rest(segment)) {
            std::string_view rest;
            if (i < path.size()) {
                rest = raw_path.substr(static_cast<std::size_t>(path[i].data() - raw_path.data()));
            }
            bound.emplace_back(segment.substr(1, segment.size() - 5), rest);
        } else if (is_parameter(segment)) {
            auto decoded = percent_decode(path[i]);
            bound.emplace_back(segment.substr(1, segment.size() - 2),
                               decoded ? *decoded : std::string(path[i]));
        }
    }
    return bound;
}

}  // namespace

void Router::add(std::string_view method, std::string_view pattern, Handler handler) {
    Route route;
    route.method = method;
    route.pattern = pattern;
    route.segments = split<std::string>(pattern);
    route.handler = std::move(handler);
    routes_.push_back(std::move(route));
}

void Router::any(std::string_view pattern, Handler handler) {
    add({}, pattern, std::move(handler));
}

Router::Match Router::lookup(std::string_view method, std::string_view raw_path) const {
    Match match;
    if (raw_path.empty() || raw_path.front() != '/') return match;
    auto path = split<std::string_view>(raw_path);
    const Route* best = nullptr;
    for (const auto& route : routes_) {
        if (!matches(route.segments, path)) continue;
        if (!route.method.empty() && route.method != method) {
            if (std::find(match.allowed.begin(), match.allowed.end(), route.method) ==
                match.allowed.end()) {
                match.allowed.push_back(route.method);
            }
            continue;
        }
        bool better = best == nullptr || closer(route.segments, best->segments) ||
                      (best->method.empty() && !route.method.empty() &&
                       !closer(best->segments, route.segments));
        if (better) best = &route;
    }
    if (best == nullptr) return match;
    match.allowed.clear();
    match.handler = &best->handler;
    match.pattern = best->pattern;
    match.parameters = bind_parameters(best->segments, path, raw_path);
    return match;
}

}  // namespace opensandbox::http
