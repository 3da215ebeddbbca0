#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// System calls that the C library does not wrap, and small files of /proc and cgroupfs.
namespace opensandbox::runtime::native {

/// A child made by clone3. In the child `pid` is 0.
struct ClonedChild {
    pid_t pid = 0;
    UniqueFd pidfd;
};

/// fork() into new namespaces. `flags` are CLONE_* without CLONE_VM; `cgroup` is a directory of
/// the v2 tree to start in, or -1. The caller must have one thread only.
Result<ClonedChild> clone_process(std::uint64_t flags, int cgroup);

/// Sends a signal through a pidfd; success also when the process is gone.
Status signal_process(int pidfd, int signal);

/// How a process ended.
struct ProcessEnd {
    int code = 0;    ///< exit code; -1 when killed
    int signal = 0;  ///< or 0
};

/// Reaps a child, or asks the kernel about one that another process reaped; empty when neither
/// knows (yet).
std::optional<ProcessEnd> process_end(int pidfd);

/// Start time of a process in clock ticks since boot: with the pid it names a process for good.
/// Empty when there is none.
std::optional<std::uint64_t> process_start_time(pid_t pid);

/// Writes a small file in one call without creating it; `directory` may be AT_FDCWD.
Status write_file_at(int directory, const char* path, std::string_view text);
Status write_file(const std::filesystem::path& path, std::string_view text);

/// Reads at most 64 KiB.
Result<std::string> read_file(const std::filesystem::path& path);
std::string read_file_or_empty(const std::filesystem::path& path);

/// Names this boot of the kernel.
std::string boot_id();

/// A failed system call, described by `what`.
inline Error last_error(std::string_view what) {
    return Error::from_errno(errno, what);
}

/// Success when `result` is not negative, else the errno.
inline Status check(long result, std::string_view what) {
    if (result < 0) return last_error(what);
    return {};
}

}  // namespace opensandbox::runtime::native
