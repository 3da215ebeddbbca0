#include "agent/telemetry/system.hpp"

#include "base/unique_fd.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

using telemetry::Attributes;
using telemetry::OtlpMetrics;

/// A machine with more sockets than this holds counts as having those that were read.
constexpr std::size_t kLargestFile = std::size_t{8} << 20;

std::string read_system_file(const char* path) {
    std::string text;
    UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
    std::array<char, 16384> piece{};
    while (file && text.size() < kLargestFile) {
        ssize_t got = ::read(file.get(), piece.data(), piece.size());
        if (got <= 0) break;
        text.append(piece.data(), static_cast<std::size_t>(got));
    }
    return text;
}

std::string_view take_line(std::string_view& text) {
    std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    return line;
}

std::string_view take_word(std::string_view& line) {
    std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    line.remove_prefix(begin);
    std::size_t end = std::min(line.find(' '), line.size());
    std::string_view word = line.substr(0, end);
    line.remove_prefix(end);
    return word;
}

std::uint64_t number_of(std::string_view word) {
    std::uint64_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    return number;
}

std::int64_t count_processes() {
    auto close_directory = [](DIR* directory) { ::closedir(directory); };
    std::unique_ptr<DIR, decltype(close_directory)> proc(::opendir("/proc"), close_directory);
    std::int64_t count = 0;
    while (const dirent* entry = proc ? ::readdir(proc.get()) : nullptr) {
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') ++count;
    }
    return count;
}

Attributes with(const char* name, const char* value, const Attributes& common) {
    Attributes attributes{{name, value}};
    attributes.insert(attributes.end(), common.begin(), common.end());
    return attributes;
}

double cpu_share(const SystemSample& before, const SystemSample& sample) {
    std::chrono::duration<double> span = sample.at - before.at;
    std::chrono::duration<double> used = sample.usage.cpu_time - before.usage.cpu_time;
    double possible = span.count() * sample.usage.cpu_count;
    return possible > 0 ? std::clamp(100 * used.count() / possible, 0.0, 100.0) : 0;
}

}  // namespace

Traffic read_traffic(std::string_view text) {
    Traffic traffic;
    while (!text.empty()) {
        std::string_view line = take_line(text);
        std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        std::string_view name = line.substr(0, colon);
        name = take_word(name);
        if (name == "lo") continue;
        std::string_view rest = line.substr(colon + 1);
        traffic.in += number_of(take_word(rest));
        for (int skipped = 0; skipped < 7; ++skipped)
            take_word(rest);
        traffic.out += number_of(take_word(rest));
    }
    return traffic;
}

std::int64_t count_sockets(std::string_view text, bool established) {
    constexpr std::string_view kEstablished = "01";
    std::int64_t count = 0;
    take_line(text);
    while (!text.empty()) {
        std::string_view line = take_line(text);
        take_word(line);
        take_word(line);
        std::string_view remote = take_word(line);
        std::string_view state = take_word(line);
        if (remote.empty() || (established && state != kEstablished)) continue;
        ++count;
    }
    return count;
}

SystemSample sample_system(const Environment& environment) {
    SystemSample sample;
    sample.at = std::chrono::steady_clock::now();
    sample.usage = read_usage(environment);
    sample.processes = count_processes();
    sample.traffic = read_traffic(read_system_file("/proc/net/dev"));
    for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"})
        sample.tcp_connections += count_sockets(read_system_file(path), true);
    for (const char* path : {"/proc/net/udp", "/proc/net/udp6"})
        sample.udp_sockets += count_sockets(read_system_file(path), false);
    return sample;
}

void write_system(OtlpMetrics& out, const SystemSample& before, const SystemSample& sample,
                  const Attributes& common) {
    out.metric(OtlpMetrics::Kind::gauge, "execd.system.process.count", "{process}", "Processes");
    out.point(sample.processes, common);
    out.metric(OtlpMetrics::Kind::gauge, "execd.system.cpu.usage", "%",
               "Share of the processors' time that was used");
    out.point(cpu_share(before, sample), common);
    out.metric(OtlpMetrics::Kind::gauge, "execd.system.memory.usage_bytes", "By", "Memory used");
    out.point(static_cast<std::int64_t>(sample.usage.memory_used), common);
    out.metric(OtlpMetrics::Kind::observed_sum, "execd.system.network.io.bytes", "By",
               "Bytes that passed the network interfaces");
    out.point(static_cast<std::int64_t>(sample.traffic.in), with("direction", "in", common));
    out.point(static_cast<std::int64_t>(sample.traffic.out), with("direction", "out", common));
    out.metric(OtlpMetrics::Kind::gauge, "execd.system.network.connections.active", "{connection}",
               "Connections in use");
    out.point(sample.tcp_connections, with("protocol", "tcp", common));
    out.point(sample.udp_sockets, with("protocol", "udp", common));
}

}  // namespace opensandbox::agent
