#include "egress/dns/query_limits.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace opensandbox::egress::dns {

namespace {

constexpr std::size_t kReverseLabels = 34;

/// Labels with escapes as they are: \DDD counts as one byte in label_size().
std::vector<std::string_view> labels_of(std::string_view name) {
    std::vector<std::string_view> labels;
    std::size_t start = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '\\') {
            ++i;
        } else if (name[i] == '.') {
            labels.push_back(name.substr(start, i - start));
            start = i + 1;
        }
    }
    if (!name.empty()) labels.push_back(name.substr(start));
    return labels;
}

std::size_t label_size(std::string_view label) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < label.size(); ++i, ++size) {
        if (label[i] != '\\' || i + 1 >= label.size()) continue;
        i += label[i + 1] >= '0' && label[i + 1] <= '9' ? 3 : 1;
    }
    return size;
}

/// Second-level labels below which names are registered in two-letter domains.
bool is_registry(std::string_view second, std::string_view top) {
    constexpr std::array<std::string_view, 9> kNown{"ac",  "co", "com", "edu", "gov",
                                                    "net", "or", "org", "ne"};
    return top.size() == 2 && std::find(kNown.begin(), kNown.end(), second) != kNown.end();
}

std::string above(std::string_view what, std::size_t size, std::size_t limit) {
    return std::string(what) + " (" + std::to_string(size) + ") is above the limit of " +
           std::to_string(limit);
}

}  // namespace

std::optional<std::string> refused_type(std::uint16_t type,
                                        const std::set<std::uint16_t>& allowed) {
    namespace dns = net::dns;
    constexpr std::array kNever{dns::kTypeAny, dns::kTypeAxfr, dns::kTypeIxfr, dns::kTypeNull,
                                dns::kTypeOpt};
    const bool refused =
        std::find(kNever.begin(), kNever.end(), type) != kNever.end() || !allowed.contains(type);
    if (!refused) return std::nullopt;
    return "query type " + std::to_string(type) + " is not allowed";
}

std::string_view registered_part(std::string_view name) {
    const auto labels = labels_of(name);
    std::size_t count = 2;
    if (labels.size() > 2 && is_registry(labels[labels.size() - 2], labels.back())) count = 3;
    if (labels.size() <= count) return name;
    const std::string_view first = labels[labels.size() - count];
    return name.substr(static_cast<std::size_t>(first.data() - name.data()));
}

std::optional<std::string> passed_limit(std::string_view name, const NameLimits& limits) {
    const auto labels = labels_of(name);
    const std::string_view domain = registered_part(name);
    const bool reverse = domain == "in-addr.arpa" || domain == "ip6.arpa";
    const std::size_t most = reverse ? std::max(kReverseLabels, limits.labels) : limits.labels;
    if (limits.labels != 0 && labels.size() > most) {
        return above("the number of labels in the name", labels.size(), most);
    }
    std::size_t below = 0;
    for (const std::string_view label : labels) {
        const std::size_t size = label_size(label);
        if (limits.label != 0 && size > limits.label) {
            return above("the length of a label in the name", size, limits.label);
        }
        if (label.data() < domain.data()) below += size + 1;
    }
    if (limits.below != 0 && below > limits.below) {
        return above("the length of the name below its domain", below, limits.below);
    }
    return std::nullopt;
}

}  // namespace opensandbox::egress::dns
