#include "runtime/host_volume.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <variant>

namespace opensandbox::runtime {
namespace {

namespace fs = std::filesystem;

Error host_path_refusal(const model::Volume& volume, std::string_view code,
                        const std::string& what) {
    return {ErrorCode::invalid_argument, "VOLUME::" + std::string(code),
            "volumes." + volume.name + ".host: " + what};
}

Error creation_failure(const model::Volume& volume, const std::string& path,
                       const std::error_code& why) {
    return {ErrorCode::internal, "VOLUME::HOST_PATH_CREATE_FAILED",
            "volumes." + volume.name + ".host: cannot use '" + path + "': " + why.message()};
}

bool is_well_formed(std::string_view path) {
    if (!path.starts_with('/') || path.ends_with('/')) return false;
    if (path.find("//") != std::string_view::npos || path.find('\0') != std::string_view::npos) {
        return false;
    }
    return (std::string(path) + "/").find("/../") == std::string::npos;
}

std::string joined(const model::Volume& volume) {
    std::string path = std::get<model::HostVolume>(volume.backend).path;
    if (!volume.sub_path.empty()) path += "/" + volume.sub_path;
    return fs::path(path).lexically_normal().string();
}

bool is_allowed(const std::string& path, const AllowedHostPaths& allowed) {
    return std::ranges::any_of(allowed,
                               [&](const std::string& entry) { return is_within(path, entry); });
}

/// Links followed as far as there is something; what is missing stays as it is written.
fs::path real(const std::string& path, std::error_code& ec) {
    return fs::weakly_canonical(path, ec);
}

/// Whether links lead out of what is allowed or out of the volume.
Status check_real_path(const model::Volume& volume, const std::string& path,
                       const AllowedHostPaths& allowed) {
    AllowedHostPaths real_allowed;
    for (const std::string& entry : allowed) {
        std::error_code ec;
        auto resolved = real(entry, ec);
        if (!ec) real_allowed.push_back(resolved.string());
    }
    std::error_code ec;
    auto root = real(std::get<model::HostVolume>(volume.backend).path, ec);
    if (ec) return creation_failure(volume, path, ec);
    if (!is_allowed(path, real_allowed) || !is_allowed(root.string(), real_allowed)) {
        return host_path_refusal(volume, "HOST_PATH_NOT_ALLOWED",
                                 "'" + path + "' is not below any of storage.allowed_host_paths.");
    }
    if (!is_within(path, root.string())) {
        return host_path_refusal(volume, "INVALID_SUB_PATH",
                                 "subPath '" + volume.sub_path + "' leads out of the volume.");
    }
    return {};
}

}  // namespace

bool is_within(std::string_view path, std::string_view directory) {
    while (directory.size() > 1 && directory.ends_with('/'))
        directory.remove_suffix(1);
    if (directory.empty() || !directory.starts_with('/')) return false;
    if (directory == "/" || path == directory) return path.starts_with('/');
    return path.starts_with(directory) && path[directory.size()] == '/';
}

bool lends_rights(const std::string& path) {
    std::error_code ec;
    fs::path at = real(path, ec);
    struct statvfs mount{};
    if (!ec && ::statvfs(at.c_str(), &mount) == 0 && (mount.f_flag & ST_NOSUID) != 0) return false;
    for (;; at = at.parent_path()) {
        struct stat info{};
        const bool roots = ::stat(at.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                           info.st_uid == 0 && (info.st_mode & S_IXOTH) == 0 &&
                           ((info.st_mode & S_IXGRP) == 0 || info.st_gid == 0);
        if (roots) return false;
        if (at == at.parent_path()) return true;
    }
}

bool is_valid_sub_path(std::string_view sub_path) {
    return !sub_path.starts_with('/') && sub_path.find('\0') == std::string_view::npos &&
           ("/" + std::string(sub_path) + "/").find("/../") == std::string::npos;
}

Status check_host_volume(const model::Volume& volume, const AllowedHostPaths& allowed) {
    const std::string& path = std::get<model::HostVolume>(volume.backend).path;
    if (!is_well_formed(path)) {
        return host_path_refusal(
            volume, "INVALID_HOST_PATH",
            "path '" + path + "' must be absolute, without '..', '//' and a trailing '/'.");
    }
    if (!is_valid_sub_path(volume.sub_path)) {
        return host_path_refusal(
            volume, "INVALID_SUB_PATH",
            "subPath '" + volume.sub_path + "' must be relative and must not contain '..'.");
    }
    if (allowed.empty()) {
        return host_path_refusal(volume, "HOST_PATH_NOT_ALLOWED",
                                 "host volumes are off: storage.allowed_host_paths is empty.");
    }
    if (!is_allowed(joined(volume), allowed)) {
        return host_path_refusal(
            volume, "HOST_PATH_NOT_ALLOWED",
            "'" + joined(volume) + "' is not below any of storage.allowed_host_paths.");
    }
    return {};
}

Result<std::string> resolve_host_volume(const model::Volume& volume,
                                        const AllowedHostPaths& allowed) {
    if (auto ok = check_host_volume(volume, allowed); !ok) return ok.error();
    std::string wanted = joined(volume);
    std::error_code ec;
    // Before anything is made: a link must not get a directory made elsewhere.
    auto target = real(wanted, ec);
    if (ec) return creation_failure(volume, wanted, ec);
    if (auto ok = check_real_path(volume, target.string(), allowed); !ok) return ok.error();
    fs::create_directories(target, ec);
    auto status = fs::status(target);
    if (ec && !fs::exists(status)) return creation_failure(volume, wanted, ec);
    if (!fs::is_directory(status) && !fs::is_regular_file(status)) {
        return host_path_refusal(volume, "INVALID_HOST_PATH",
                                 "'" + wanted + "' is neither a directory nor a regular file.");
    }
    auto made = fs::canonical(target, ec);
    if (ec) return creation_failure(volume, wanted, ec);
    if (auto ok = check_real_path(volume, made.string(), allowed); !ok) return ok.error();
    return made.string();
}

}  // namespace opensandbox::runtime
