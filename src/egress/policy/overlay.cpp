#include "egress/policy/overlay.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

/// Calls `take` with the target of each line; what it says of one is told with the line's number.
template <class Take>
Status each_target(std::string_view text, std::string_view file, const Take& take) {
    for (std::size_t number = 1; !text.empty(); ++number) {
        const auto end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        const auto from = line.find_first_not_of(" \t\r\v\f");
        if (from == line.npos || line[from] == '#') continue;
        Result<Target> target = Target::parse(line.substr(from));
        const Status taken = target ? take(std::move(*target)) : Status(target.error());
        if (!taken) {
            return taken.error().within(std::string(file) + " line " + std::to_string(number));
        }
    }
    return {};
}

}  // namespace

Result<std::vector<Rule>> parse_overlay(std::string_view text, Action action,
                                        std::string_view file) {
    std::vector<Rule> rules;
    const Status read = each_target(text, file, [&](Target target) -> Status {
        rules.emplace_back(action, std::move(target));
        return {};
    });
    if (!read) return read.error();
    return rules;
}

Result<LogSkip> LogSkip::parse(std::string_view text, std::string_view file) {
    LogSkip skip;
    const Status read = each_target(text, file, [&](const Target& target) -> Status {
        if (target.kind() == Target::Kind::address) {
            return Error(ErrorCode::invalid_argument, "must be a name, not an address");
        }
        if (!target.scope().is_all()) {
            return Error(ErrorCode::invalid_argument, "must be a name without a port");
        }
        (target.kind() == Target::Kind::name ? skip.exact_ : skip.suffixes_)
            .push_back(target.name());
        return {};
    });
    if (!read) return read.error();
    std::ranges::sort(skip.exact_);
    std::ranges::sort(skip.suffixes_);
    return skip;
}

bool LogSkip::skips(std::string_view name) const {
    if (exact_.empty() && suffixes_.empty()) return false;
    if (name.ends_with('.')) name.remove_suffix(1);
    const std::string lower = lower_case(name);
    if (std::ranges::binary_search(exact_, lower)) return true;
    for (auto dot = lower.find('.'); dot != lower.npos; dot = lower.find('.', dot + 1)) {
        if (std::ranges::binary_search(suffixes_, std::string_view(lower).substr(dot + 1))) {
            return true;
        }
    }
    return false;
}

}  // namespace opensandbox::egress
