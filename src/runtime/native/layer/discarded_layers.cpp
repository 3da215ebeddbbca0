#include "runtime/native/layer/discarded_layers.hpp"

#include "base/remove_tree.hpp"
#include "runtime/native/kernel/kernel.hpp"
#include "runtime/native/layer/layer_image.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace opensandbox::runtime::native {

Status DiscardedLayers::put_aside(const std::filesystem::path& slot) const {
    if (::mkdir(directory_.c_str(), 0700) < 0 && errno != EEXIST) {
        return last_error("mkdir " + directory_.string());
    }
    for (const char* name : {"u", "w", "u2", "w2", layer_file}) {
        const auto from = slot / name;
        const auto to = directory_ / (slot.filename().string() + "." + name);
        if (::rename(from.c_str(), to.c_str()) < 0 && errno != ENOENT) {
            return last_error("rename " + from.string());
        }
    }
    return {};
}

bool DiscardedLayers::any() const {
    std::error_code error;
    return std::filesystem::is_directory(directory_, error);
}

Status DiscardedLayers::remove() const {
    return remove_tree(directory_);
}

}  // namespace opensandbox::runtime::native
