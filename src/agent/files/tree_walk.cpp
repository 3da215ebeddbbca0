#include "agent/files/tree_walk.hpp"

#include "base/unique_fd.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <memory>

namespace opensandbox::agent {
namespace {

/// Levels beyond what a path can name anyway; a tree grown deeper on purpose ends here.
constexpr std::size_t kMaxDepth = 2048;

bool is_directory(int parent, const dirent& entry) {
    if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
    struct stat info{};
    return ::fstatat(parent, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(info.st_mode);
}

}  // namespace

TreeWalk::TreeWalk(std::string root, std::size_t depth) : depth_(std::min(depth, kMaxDepth)) {
    if (depth_ > 0) enter(std::move(root));
}

void TreeWalk::enter(std::string path) {
    Level level;
    level.path = std::move(path);
    UniqueFd fd(::open(level.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    auto close_directory = [](DIR* directory) { ::closedir(directory); };
    std::unique_ptr<DIR, decltype(close_directory)> directory(fd ? ::fdopendir(fd.get()) : nullptr,
                                                              close_directory);
    if (!directory) return;
    int own = fd.release();
    while (const dirent* entry = ::readdir(directory.get())) {
        std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        Child child;
        child.name = name;
        child.directory = is_directory(own, *entry);
        level.children.push_back(std::move(child));
    }
    std::ranges::sort(level.children, {}, &Child::name);
    levels_.push_back(std::move(level));
}

const TreeWalk::Entry* TreeWalk::next() {
    if (entry_.directory && levels_.size() < depth_) enter(entry_.path);
    entry_.directory = false;
    while (!levels_.empty()) {
        Level& level = levels_.back();
        if (level.next == level.children.size()) {
            levels_.pop_back();
            continue;
        }
        Child& child = level.children[level.next++];
        entry_.path = level.path == "/" ? "/" : level.path + "/";
        entry_.path += child.name;
        entry_.name = std::string_view(entry_.path).substr(entry_.path.size() - child.name.size());
        entry_.directory = child.directory;
        return &entry_;
    }
    return nullptr;
}

}  // namespace opensandbox::agent
