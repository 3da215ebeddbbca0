#include "runtime/native/records/claim_volumes.hpp"

#include "base/identifier.hpp"
#include "base/remove_tree.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace {

constexpr std::size_t kMaxName = 253;
/// No claim's name begins with a dot.
constexpr std::string_view kGone = ".gone-";

}  // namespace

bool ClaimVolumes::is_valid_name(std::string_view name) {
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !name.empty() && name.size() <= kMaxName && plain(name.front()) && plain(name.back()) &&
           std::ranges::all_of(name, [&](char c) { return plain(c) || c == '-' || c == '.'; });
}

Result<bool> ClaimVolumes::ensure(const std::string& name, bool create) const {
    if (!is_valid_name(name)) {
        return Error(ErrorCode::invalid_argument, "VOLUME::INVALID_PVC_NAME",
                     "pvc.claimName: '" + name + "' must be a name as Kubernetes has them.");
    }
    struct stat info{};
    if (::lstat(path(name).c_str(), &info) == 0) return false;
    if (errno != ENOENT) return last_error("volume " + name);
    if (!create) {
        return Error(
            ErrorCode::invalid_argument, "VOLUME::PVC_NOT_FOUND",
            "pvc.claimName: volume '" + name + "' does not exist and createIfNotExists is false.");
    }
    ::mkdir(root_.c_str(), 0700);
    if (::mkdir(path(name).c_str(), 0755) == 0) {
        ::chmod(path(name).c_str(), 0755);
        return true;
    }
    if (errno == EEXIST) return false;
    return last_error("make volume " + name);
}

void ClaimVolumes::undo(const std::string& name) const {
    ::rmdir(path(name).c_str());
}

void ClaimVolumes::discard(const std::string& name) const {
    if (!is_valid_name(name)) return;
    const auto target = root_ / (std::string(kGone) + new_hex_id());
    ::rename(path(name).c_str(), target.c_str());
}

bool ClaimVolumes::has_gone() const {
    std::error_code error;
    const std::filesystem::directory_iterator entries(root_, error);
    return std::any_of(begin(entries), end(entries), [](const auto& entry) {
        return entry.path().filename().string().starts_with(kGone);
    });
}

Status ClaimVolumes::remove_gone() const {
    Status result;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root_, error)) {
        if (!entry.path().filename().string().starts_with(kGone)) continue;
        if (auto s = remove_tree(entry.path()); !s) result = s;
    }
    return result;
}

}  // namespace opensandbox::runtime::native
