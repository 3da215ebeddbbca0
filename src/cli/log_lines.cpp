#include "cli/log_lines.hpp"

#include <algorithm>

namespace opensandbox::cli {

namespace {

constexpr std::string_view kNothing = "(no logs)";

bool has_time(std::string_view line) {
    return line.size() > 10 && line[0] >= '0' && line[0] <= '9' && line[4] == '-' &&
           line[10] == 'T';
}

std::string_view time_of(std::string_view line) {
    return has_time(line) ? line.substr(0, line.find(' ')) : std::string_view();
}

}  // namespace

std::string_view without_time(std::string_view line) {
    if (!has_time(line)) return line;
    const auto space = line.find(' ');
    return space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
}

std::vector<std::string_view> LogFollower::fresh(std::string_view text) {
    std::vector<std::string_view> out;
    started_ = true;
    std::vector<std::string> known = at_last_time_;
    while (!text.empty()) {
        const auto end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.empty() || line == kNothing) continue;
        const std::string_view time = time_of(line);
        if (time < last_time_) continue;
        if (time == last_time_) {
            auto seen = std::ranges::find(known, line);
            if (seen != known.end()) {
                known.erase(seen);
                continue;
            }
        } else {
            last_time_ = time;
            at_last_time_.clear();
            known.clear();
        }
        at_last_time_.emplace_back(line);
        out.push_back(line);
    }
    return out;
}

}  // namespace opensandbox::cli
