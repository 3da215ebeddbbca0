#include "base/identifier.hpp"
#include "base/unique_fd.hpp"
#include "runtime/bucket_mounts.hpp"
#include "runtime/host_command.hpp"

#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

namespace opensandbox::runtime {
namespace {

constexpr std::chrono::seconds kMountLimit{30};
constexpr std::chrono::seconds kAnswerLimit{10};
constexpr std::chrono::seconds kUnmountLimit{10};
constexpr mode_t kPrivate = 0600;
constexpr std::string_view kSecretPrefix = ".ossfs-secret-";

Error mount_failure(const model::Volume& volume, const std::string& what) {
    return {ErrorCode::internal, "VOLUME::OSSFS_MOUNT_FAILED",
            "volumes." + volume.name + ".ossfs: " + what};
}

/// A file that only this user reads, gone when destroyed.
class SecretFile {
  public:
    static Result<std::unique_ptr<SecretFile>> write(const std::filesystem::path& directory,
                                                     const std::string& content) {
        std::string path = directory / (std::string(kSecretPrefix) + new_hex_id());
        UniqueFd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivate));
        if (!out) return Error::from_errno(errno, "make " + path);
        auto file = std::make_unique<SecretFile>(path);
        auto written = ::write(out.get(), content.data(), content.size());
        if (written != static_cast<ssize_t>(content.size())) {
            return Error::from_errno(errno, "write " + path);
        }
        return file;
    }
    explicit SecretFile(std::string p) : path(std::move(p)) {}
    SecretFile(const SecretFile&) = delete;
    SecretFile& operator=(const SecretFile&) = delete;
    ~SecretFile() { ::unlink(path.c_str()); }

    const std::string path;
};

/// Blanks in paths of mountinfo are written as octal numbers.
std::string unescaped(const std::string& text) {
    constexpr std::size_t kDigits = 3;
    constexpr int kOctal = 8;
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + kDigits < text.size()) {
            out += static_cast<char>(std::stoi(text.substr(i + 1, kDigits), nullptr, kOctal));
            i += kDigits;
        } else {
            out += text[i];
        }
    }
    return out;
}

std::vector<std::string> mount_points() {
    std::ifstream mounts("/proc/self/mountinfo");
    std::vector<std::string> out;
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string point;
    std::string rest;
    while (mounts >> id >> parent >> device >> root >> point && std::getline(mounts, rest))
        out.push_back(unescaped(point));
    return out;
}

/// As mountinfo names it: the directories above it may be links.
std::string real_path(const std::string& path) {
    std::filesystem::path whole(path);
    std::error_code ec;
    auto parent = std::filesystem::canonical(whole.parent_path(), ec);
    return ec ? path : (parent / whole.filename()).string();
}

bool is_mounted(const std::string& path) {
    return std::ranges::count(mount_points(), real_path(path)) > 0;
}

/// Asks in another process: whoever asks a file system without a program behind it waits with it.
/// The kernel itself may answer for a file, from what it remembers; never for a file system.
Status ask(const std::string& path, int stop) {
    HostCommandOptions options;
    options.stop = stop;
    auto answered = run_host_command({"stat", "-f", path}, kAnswerLimit, options);
    if (answered) answered = run_host_command({"stat", path}, kAnswerLimit, options);
    return answered;
}

Status make_mount_point(const model::Volume& volume, const std::string& path) {
    std::error_code ec;
    std::filesystem::create_directories(path, ec);
    if (!ec) return {};
    return Error(ErrorCode::internal, "VOLUME::INVALID_OSSFS_MOUNT_ROOT",
                 "volumes." + volume.name + ".ossfs: cannot make '" + path + "': " + ec.message());
}

Status run_tool(const model::Volume& volume, const std::string& path,
                const BucketMountSettings& settings) {
    const auto& bucket = std::get<model::BucketVolume>(volume.backend);
    BucketCommand command = bucket_command(volume, path, settings.access);
    auto secret = SecretFile::write(settings.secrets, command.secret);
    if (!secret) return mount_failure(volume, secret.error().message());
    for (std::string& word : command.argv) {
        if (std::size_t at = word.find("{secret}"); at != std::string::npos) {
            word.replace(at, std::string_view("{secret}").size(), secret.value()->path);
        }
    }
    HostCommandOptions options;
    options.secrets = {bucket.access_key_id, bucket.access_key_secret};
    options.stop = settings.stop;
    auto ran = run_host_command(command.argv, kMountLimit, options);
    if (!ran && ran.error().code() == ErrorCode::not_found) {
        return mount_failure(volume, command.argv.front() + " is not installed on this host");
    }
    if (!ran) return mount_failure(volume, ran.error().message());
    if (!is_mounted(path)) {
        return mount_failure(volume, command.argv.front() + ": ended without mounting anything");
    }
    // The tool reads its bucket after its parent has ended well.
    auto answers = ask(path, settings.stop);
    if (!answers) {
        return mount_failure(volume, command.argv.front() + ": the mount does not answer: " +
                                         answers.error().message());
    }
    return {};
}

}  // namespace

Status mount_bucket(const model::Volume& volume, const std::string& path,
                    const BucketMountSettings& settings) {
    if (is_mounted(path)) {
        auto answers = ask(path, settings.stop);
        if (answers) return {};
        const bool dead = answers.error().code() == ErrorCode::io;
        if (!dead) return mount_failure(volume, "its mount does not answer");
        if (auto gone = cut_off_bucket(path); !gone) return gone;
    }
    if (auto made = make_mount_point(volume, path); !made) return made;
    auto mounted = run_tool(volume, path, settings);
    if (mounted) return {};
    if (is_mounted(path)) static_cast<void>(cut_off_bucket(path));
    ::rmdir(path.c_str());
    return mounted;
}

Status unmount_bucket(const std::string& path) {
    if (is_mounted(path)) {
        auto ran = run_host_command({"fusermount", "-u", path}, kUnmountLimit);
        if (!ran) ran = run_host_command({"umount", path}, kUnmountLimit);
    }
    if (is_mounted(path)) {
        if (auto gone = cut_off_bucket(path); !gone) return gone;
    }
    ::rmdir(path.c_str());
    return {};
}

Status cut_off_bucket(const std::string& path) {
    // Ends what waits for an answer, too, so that nobody hangs who holds a copy of the mount.
    if (::umount2(path.c_str(), MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW) == 0) return {};
    if (errno == EINVAL || errno == ENOENT) return {};
    return Error(ErrorCode::internal, "VOLUME::OSSFS_UNMOUNT_FAILED",
                 Error::from_errno(errno, "unmount " + path).message());
}

std::vector<std::string> mounts_below(const std::string& directory) {
    std::error_code ec;
    auto root = std::filesystem::canonical(directory, ec);
    std::vector<std::string> out;
    if (ec) return out;
    for (const std::string& point : mount_points()) {
        if (std::filesystem::path(point).parent_path() == root) out.push_back(point);
    }
    return out;
}

void sweep_bucket_secrets(const std::filesystem::path& directory) {
    // Another server may share the directory; its file is in use for as long as a tool may take.
    const auto old = std::filesystem::file_time_type::clock::now() - 2 * kMountLimit;
    std::error_code ec;
    for (const auto& entry : std::filesystem::directory_iterator(directory, ec)) {
        if (!entry.path().filename().string().starts_with(kSecretPrefix)) continue;
        std::error_code ignored;
        if (entry.last_write_time(ignored) < old) ::unlink(entry.path().c_str());
    }
}

}  // namespace opensandbox::runtime
