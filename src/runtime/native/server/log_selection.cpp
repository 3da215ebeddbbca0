#include "runtime/native/server/readings.hpp"

#include <algorithm>
#include <deque>

namespace opensandbox::runtime::native {

std::string select_lines(std::string_view log, const LogQuery& query) {
    std::deque<std::string_view> lines;
    const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(query.tail, 0));
    bool recent = !query.since;
    while (!log.empty()) {
        const std::size_t end = std::min(log.find('\n'), log.size() - 1) + 1;
        std::string_view line = log.substr(0, end);
        log.remove_prefix(end);
        const std::size_t blank = line.find(' ');
        const auto at =
            blank == std::string_view::npos ? std::nullopt : parse_rfc3339(line.substr(0, blank));
        if (at && query.since) recent = *at >= *query.since;
        if (!recent) continue;
        if (at && !query.timestamps) line.remove_prefix(blank + 1);
        lines.push_back(line);
        if (lines.size() > wanted) lines.pop_front();
    }
    std::string out;
    for (const std::string_view line : lines)
        out += line;
    return out;
}

}  // namespace opensandbox::runtime::native
