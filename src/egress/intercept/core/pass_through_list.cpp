#include "egress/intercept/core/pass_through_list.hpp"

#include "egress/intercept/core/host_name.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

bool is_below(std::string_view host, std::string_view name) {
    return host.size() > name.size() && host.substr(host.size() - name.size()) == name &&
           host[host.size() - name.size() - 1] == '.';
}

}  // namespace

Result<PassThroughList> PassThroughList::make(const std::vector<std::string>& names,
                                              const std::vector<std::string>& patterns) {
    PassThroughList list;
    for (const std::string& entry : names) {
        Name name;
        name.below = entry.substr(0, 2) == "*.";
        auto normal = normal_host_name(std::string_view(entry).substr(name.below ? 2 : 0));
        if (!normal) {
            return Error(ErrorCode::invalid_argument, "pass-through: no host name: " + entry);
        }
        name.text = std::move(*normal);
        list.names_.push_back(std::move(name));
    }
    for (const std::string& entry : patterns) {
        try {
            list.patterns_.emplace_back(
                entry, std::regex::ECMAScript | std::regex::icase | std::regex::optimize);
        } catch (const std::regex_error& error) {
            return Error(ErrorCode::invalid_argument,
                         "pass-through: " + entry + ": " + error.what());
        }
    }
    return list;
}

bool PassThroughList::has(std::string_view host, std::uint16_t port) const {
    for (const Name& name : names_) {
        if (name.below ? is_below(host, name.text) : host == name.text) return true;
    }
    if (patterns_.empty()) return false;
    std::string with_port = host_and_port(host, port);
    for (const std::regex& pattern : patterns_) {
        if (std::regex_search(host.begin(), host.end(), pattern)) return true;
        if (std::regex_search(with_port, pattern)) return true;
    }
    return false;
}

bool PassThroughList::covers(std::string_view name, bool below,
                             const std::vector<std::uint16_t>& ports) const {
    return std::ranges::any_of(
        ports, [&](std::uint16_t port) { return below ? has_below(name, port) : has(name, port); });
}

bool PassThroughList::has_below(std::string_view name, std::uint16_t port) const {
    for (const Name& listed : names_) {
        if (is_below(listed.text, name)) return true;
        if (listed.below && (listed.text == name || is_below(name, listed.text))) return true;
    }
    PassThroughList patterns;
    patterns.patterns_ = patterns_;
    return patterns.has("*." + std::string(name), port) || patterns.has(name, port);
}

Result<PassThroughList> pass_through_list(const std::vector<std::string>& entries) {
    std::vector<std::string> names;
    std::vector<std::string> patterns;
    for (const std::string& entry : entries) {
        const bool below = entry.starts_with("*.");
        const bool name =
            normal_host_name(std::string_view(entry).substr(below ? 2 : 0)).has_value();
        (name ? names : patterns).push_back(entry);
    }
    return PassThroughList::make(names, patterns);
}

}  // namespace opensandbox::egress
