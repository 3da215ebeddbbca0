#include "runtime/native/ground/confinement/cgroup.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <charconv>

namespace opensandbox::runtime::native {

namespace {

namespace fs = std::filesystem;

constexpr double kMicrosInSecond = 1e6;
constexpr double kNanosInSecond = 1e9;

std::optional<std::uint64_t> number_at(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    return value;
}

std::optional<std::uint64_t> number_in(const fs::path& file) {
    auto text = read_file(file);
    return text ? number_at(*text) : std::nullopt;
}

/// The number after `key` in lines of "key value".
std::optional<std::uint64_t> number_after(const fs::path& file, std::string_view key) {
    auto text = read_file(file);
    if (!text) return std::nullopt;
    std::string_view rest = *text;
    while (!rest.empty()) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
            return number_at(line.substr(key.size() + 1));
        }
    }
    return std::nullopt;
}

void read_memory(const fs::path& path, bool unified, Usage& usage) {
    usage.memory_bytes = number_in(path / (unified ? "memory.current" : "memory.usage_in_bytes"));
    usage.memory_peak_bytes =
        number_in(path / (unified ? "memory.peak" : "memory.max_usage_in_bytes"));
    usage.oom_kills =
        number_after(path / (unified ? "memory.events" : "memory.oom_control"), "oom_kill")
            .value_or(0);
}

/// Version 2 counts processor time in every cgroup, whichever tree has the controller.
void read_cpu(const CgroupHierarchy& tree, const fs::path& path, Usage& usage) {
    if (usage.cpu_seconds) return;
    if (tree.unified) {
        if (const auto micros = number_after(path / "cpu.stat", "usage_usec")) {
            usage.cpu_seconds = static_cast<double>(*micros) / kMicrosInSecond;
        }
    } else if (tree.controllers.contains("cpu")) {
        if (const auto nanos = number_in(path / "cpuacct.usage")) {
            usage.cpu_seconds = static_cast<double>(*nanos) / kNanosInSecond;
        }
    }
}

}  // namespace

Usage SlotCgroup::usage() const {
    Usage usage;
    for (const CgroupHierarchy& tree : tree_->hierarchies()) {
        const fs::path path = tree.base / name_;
        read_cpu(tree, path, usage);
        if (tree.controllers.contains("memory")) read_memory(path, tree.unified, usage);
        if (tree.controllers.contains("pids")) {
            usage.pids = number_in(path / "pids.current");
            usage.pids_refused = number_after(path / "pids.events", "max").value_or(0);
        }
    }
    return usage;
}

}  // namespace opensandbox::runtime::native
