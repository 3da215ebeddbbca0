#include "runtime/native/ground/layer/discarded_layers.hpp"

#include "base/identifier.hpp"
#include "base/remove_tree.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/layer_image.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

Status remove_one(const std::filesystem::path& path) {
    struct stat info{};
    if (::lstat(path.c_str(), &info) < 0)
        return errno == ENOENT ? Status() : last_error(path.c_str());
    if (!S_ISDIR(info.st_mode)) return check(::unlink(path.c_str()), "remove " + path.string());
    // Before the files: those of another file system go faster with it.
    if (auto s = unmount_layer(path); !s) return s;
    return remove_tree(path);
}

}  // namespace

Status DiscardedLayers::make() const {
    if (::mkdir(directory_.c_str(), 0700) < 0 && errno != EEXIST) {
        return last_error("mkdir " + directory_.string());
    }
    return {};
}

Status DiscardedLayers::put_aside(const std::filesystem::path& slot) const {
    if (auto s = make(); !s) return s;
    for (const char* name : {"u", "w", "u2", "w2", kLayerFile}) {
        const auto from = slot / name;
        const auto to = directory_ / (slot.filename().string() + "." + name);
        if (::rename(from.c_str(), to.c_str()) < 0 && errno != ENOENT) {
            return last_error("rename " + from.string());
        }
    }
    return {};
}

Status DiscardedLayers::take(const std::filesystem::path& slot) const {
    // Slots of a later life may have the same name.
    const auto to = directory_ / (slot.filename().string() + "." + new_hex_id());
    // Whoever removes may just have removed the directory, too.
    for (int attempt = 0; attempt < 100; ++attempt) {
        if (::access(slot.c_str(), F_OK) < 0 && errno == ENOENT) return {};
        if (auto s = make(); !s) return s;
        if (::rename(slot.c_str(), to.c_str()) == 0) return {};
        if (errno != ENOENT) break;
    }
    return last_error("rename " + slot.string());
}

bool DiscardedLayers::any() const {
    std::error_code error;
    return std::filesystem::is_directory(directory_, error);
}

Status DiscardedLayers::remove() const {
    std::error_code error;
    std::vector<std::filesystem::path> entries;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, error))
        entries.push_back(entry.path());
    Status result;
    for (const auto& entry : entries) {
        if (auto s = remove_one(entry); !s) result = s;
    }
    if (!result || ::rmdir(directory_.c_str()) == 0) return result;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOENT) return {};
    return last_error("remove " + directory_.string());
}

}  // namespace opensandbox::runtime::native
