#include "telemetry/process_figures.hpp"

#include <sys/resource.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

namespace opensandbox::telemetry {
namespace {

std::uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    if (!(statm >> size >> resident)) return 0;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t open_descriptors() {
    std::error_code ec;
    std::uint64_t count = 0;
    for (std::filesystem::directory_iterator at("/proc/self/fd", ec), end; !ec && at != end;
         at.increment(ec)) {
        ++count;
    }
    return count > 0 ? count - 1 : 0;  // without the one that reads the directory
}

double start_time() {
    std::ifstream stat("/proc/self/stat");
    std::string line;
    if (!std::getline(stat, line)) return 0;
    auto name_end = line.rfind(')');
    if (name_end == std::string::npos) return 0;
    std::istringstream fields(line.substr(name_end + 1));
    constexpr int kStartTimeField = 20;  // the 22nd of the line, after the name
    std::string field;
    for (int i = 0; i < kStartTimeField; ++i)
        fields >> field;
    timespec since_boot{};
    timespec wall{};
    ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
    ::clock_gettime(CLOCK_REALTIME, &wall);
    auto seconds = [](const timespec& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
    };
    double ticks = std::strtod(field.c_str(), nullptr);
    return seconds(wall) - seconds(since_boot) +
           ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

ProcessFigures read_process_figures() {
    ProcessFigures figures;
    figures.resident_bytes = resident_bytes();
    figures.open_descriptors = open_descriptors();
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0) {
        auto seconds = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
        };
        figures.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    }
    figures.start_time = start_time();
    return figures;
}

}  // namespace opensandbox::telemetry
