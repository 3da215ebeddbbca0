#include "egress/intercept/pass_through_list.hpp"

#include "egress/intercept/host_name.hpp"

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

}  // namespace opensandbox::egress
