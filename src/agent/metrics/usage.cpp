#include "agent/metrics/usage.hpp"

#include "base/unique_fd.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

/// The start of a small file of /proc or /sys; empty when it cannot be read.
std::string read_small(const std::string& path) {
    std::array<char, 8192> text{};
    UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : -1;
    return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

template <class Number>
std::optional<Number> to_number(std::string_view text) {
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    Number number{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    return number;
}

/// The field at `index` (from 0) of a line of fields between spaces.
std::string_view field_at(std::string_view line, std::size_t index) {
    while (index-- > 0) {
        std::size_t space = line.find(' ');
        if (space == std::string_view::npos) return {};
        line.remove_prefix(space + 1);
    }
    return line.substr(0, line.find_first_of(" \n"));
}

void lower(std::uint64_t& ceiling, std::optional<std::uint64_t> limit) {
    if (limit && *limit > 0) ceiling = std::min(ceiling, *limit);
}

struct Readings {
    std::optional<std::uint64_t> memory_used;
    std::optional<std::uint64_t> memory_limit;
    std::optional<std::chrono::microseconds> cpu_time;
    std::optional<double> cpu_limit;
};

void read_cgroup_v2(Readings& out) {
    const std::string base = "/sys/fs/cgroup/";
    if (auto current = to_number<std::uint64_t>(read_small(base + "memory.current"))) {
        std::uint64_t cache =
            stat_value(read_small(base + "memory.stat"), "inactive_file").value_or(0);
        out.memory_used = *current - std::min(*current, cache);
        out.memory_limit = to_number<std::uint64_t>(read_small(base + "memory.max"));
    }
    // The root cgroup has cpu.stat as well, but it is the machine's.
    std::string quota = read_small(base + "cpu.max");
    if (quota.empty()) return;
    if (auto used = stat_value(read_small(base + "cpu.stat"), "usage_usec")) {
        out.cpu_time = std::chrono::microseconds(*used);
    }
    auto allowed = to_number<double>(field_at(quota, 0));
    auto period = to_number<double>(field_at(quota, 1));
    if (allowed && period && *period > 0) out.cpu_limit = *allowed / *period;
}

void read_cgroup_v1(Readings& out) {
    const std::string memory = "/sys/fs/cgroup/memory/memory.";
    if (auto current = to_number<std::uint64_t>(read_small(memory + "usage_in_bytes"))) {
        std::uint64_t cache =
            stat_value(read_small(memory + "stat"), "total_inactive_file").value_or(0);
        out.memory_used = *current - std::min(*current, cache);
        out.memory_limit = to_number<std::uint64_t>(read_small(memory + "limit_in_bytes"));
    }
    const std::string cpu = "/sys/fs/cgroup/cpuacct/cpuacct.usage";
    if (auto used = to_number<std::uint64_t>(read_small(cpu))) {
        out.cpu_time = std::chrono::microseconds(*used / 1000);
    }
    auto allowed = to_number<double>(read_small("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"));
    auto period = to_number<double>(read_small("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
    if (allowed && period && *allowed > 0 && *period > 0) out.cpu_limit = *allowed / *period;
}

struct ProcessSums {
    std::uint64_t ticks = 0;
    std::uint64_t pages = 0;
};

ProcessSums sum_processes() {
    ProcessSums sums;
    auto close_directory = [](DIR* directory) { ::closedir(directory); };
    std::unique_ptr<DIR, decltype(close_directory)> proc(::opendir("/proc"), close_directory);
    if (!proc) return sums;
    while (const dirent* entry = ::readdir(proc.get())) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        std::string base = std::string("/proc/") + entry->d_name;
        sums.ticks += process_ticks(read_small(base + "/stat")).value_or(0);
        sums.pages += private_pages(read_small(base + "/statm")).value_or(0);
    }
    return sums;
}

std::optional<std::uint64_t> environment_bytes(const Environment& environment) {
    auto text = environment.get("OPENSANDBOX_MEMORY_LIMIT_BYTES");
    return text ? to_number<std::uint64_t>(*text) : std::nullopt;
}

std::optional<double> environment_cores(const Environment& environment) {
    auto text = environment.get("OPENSANDBOX_CPU_LIMIT");
    return text ? to_number<double>(*text) : std::nullopt;
}

/// meminfo counts in KiB.
std::uint64_t meminfo_bytes(const std::string& meminfo, std::string_view name) {
    return stat_value(meminfo, name).value_or(0) * 1024;
}

}  // namespace

std::optional<std::uint64_t> stat_value(std::string_view text, std::string_view name) {
    while (!text.empty()) {
        std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ' ') {
            return to_number<std::uint64_t>(line.substr(name.size() + 1));
        }
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    return std::nullopt;
}

std::optional<std::uint64_t> process_ticks(std::string_view stat_line) {
    // The name in parentheses may hold anything: count fields from its end.
    std::size_t close = stat_line.rfind(')');
    if (close == std::string_view::npos || close + 2 > stat_line.size()) return std::nullopt;
    std::string_view rest = stat_line.substr(close + 2);
    std::uint64_t sum = 0;
    for (std::size_t field = 11; field <= 14; ++field) {
        auto ticks = to_number<std::uint64_t>(field_at(rest, field));
        if (!ticks) return std::nullopt;
        sum += *ticks;
    }
    return sum;
}

std::optional<std::uint64_t> private_pages(std::string_view statm_line) {
    auto resident = to_number<std::uint64_t>(field_at(statm_line, 1));
    auto shared = to_number<std::uint64_t>(field_at(statm_line, 2));
    if (!resident || !shared) return std::nullopt;
    return *resident - std::min(*resident, *shared);
}

Usage read_usage(const Environment& environment) {
    Readings readings;
    read_cgroup_v2(readings);
    if (!readings.memory_used) read_cgroup_v1(readings);
    std::string meminfo = read_small("/proc/meminfo");
    auto limit = environment_bytes(environment);

    Usage usage;
    usage.memory_total = meminfo_bytes(meminfo, "MemTotal:");
    lower(usage.memory_total, readings.memory_limit);
    lower(usage.memory_total, limit);
    usage.cpu_count = static_cast<double>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    for (auto cores : {readings.cpu_limit, environment_cores(environment)}) {
        if (cores && *cores > 0) usage.cpu_count = std::min(usage.cpu_count, *cores);
    }
    ProcessSums sums;
    if (!readings.memory_used || !readings.cpu_time) sums = sum_processes();
    if (readings.memory_used) {
        usage.memory_used = *readings.memory_used;
    } else if (limit) {
        usage.memory_used = sums.pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    } else {
        usage.memory_used = usage.memory_total -
                            std::min(usage.memory_total, meminfo_bytes(meminfo, "MemAvailable:"));
    }
    usage.memory_used = std::min(usage.memory_used, usage.memory_total);
    auto ticks_per_second = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
    usage.cpu_time = readings.cpu_time.value_or(
        std::chrono::microseconds(sums.ticks * 1'000'000 / ticks_per_second));
    return usage;
}

}  // namespace opensandbox::agent
