#include "egress/role/host_figures.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace opensandbox::egress {

namespace {

/// The numbers of the line that begins with `key`.
std::vector<std::uint64_t> numbers(std::string_view text, std::string_view key) {
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (!line.starts_with(key)) continue;
        line.remove_prefix(key.size());
        std::vector<std::uint64_t> found;
        while (true) {
            line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
            std::uint64_t number = 0;
            const auto [end, failed] =
                std::from_chars(line.data(), line.data() + line.size(), number);
            if (failed != std::errc()) return found;
            found.push_back(number);
            line.remove_prefix(static_cast<std::size_t>(end - line.data()));
        }
    }
    return {};
}

std::string read_text(const char* path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

double HostFigures::cpu_share(const HostFigures& before) const {
    if (all_ticks <= before.all_ticks || busy_ticks < before.busy_ticks) return 0;
    const auto busy = static_cast<double>(busy_ticks - before.busy_ticks);
    return std::min(1.0, busy / static_cast<double>(all_ticks - before.all_ticks));
}

HostFigures parse_host_figures(std::string_view meminfo, std::string_view stat) {
    HostFigures figures;
    const auto total = numbers(meminfo, "MemTotal:");
    const auto available = numbers(meminfo, "MemAvailable:");
    if (!total.empty() && !available.empty() && total[0] >= available[0]) {
        figures.memory_used = (total[0] - available[0]) * 1024;
    }
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
    const auto ticks = numbers(stat, "cpu ");
    for (std::size_t i = 0; i < ticks.size() && i < 8; ++i) {
        figures.all_ticks += ticks[i];
        if (i != 3 && i != 4) figures.busy_ticks += ticks[i];
    }
    return figures;
}

HostFigures read_host_figures() {
    return parse_host_figures(read_text("/proc/meminfo"), read_text("/proc/stat"));
}

}  // namespace opensandbox::egress
