#pragma once

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "image/budget.hpp"
#include "image/entry_path.hpp"

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace opensandbox::image {

/// The directory of one layer while it is being unpacked. Every path is resolved by the kernel
/// below that directory and through no symbolic link (openat2), so no name can leave it.
class LayerTree {
  public:
    /// Borrows `root`.
    LayerTree(int root, ImportBudget& budget) : root_(root), budget_(budget) {}

    /// A descriptor of the directory `path` lies in, made with mode 0755 where it is missing.
    /// Valid until the next call.
    Result<int> parent(const EntryPath& path);
    /// Frees the place of `path` in its parent: what the archive put there before goes, except a
    /// directory that holds something.
    Status clear(int parent, const EntryPath& path);
    /// Makes the directory or keeps one that is there. Over a whiteout it becomes opaque.
    Status make_directory(int parent, const EntryPath& path);
    /// A character device 0/0, which overlayfs takes for a whiteout; beside a directory of this
    /// layer the directory becomes opaque instead.
    Status make_whiteout(int parent, const EntryPath& path, std::string_view target);
    /// Hides everything below the directory from the layers below.
    Status make_opaque(int parent, const EntryPath& path);
    /// The directory itself, for reading.
    Result<UniqueFd> open_directory(const std::string& path);
    /// Links `path` to the file `target` of this layer.
    Status link(int parent, const EntryPath& path, std::string_view target);

  private:
    [[nodiscard]] int resolve(const std::string& path, int flags) const;
    Result<UniqueFd> make_parents(const EntryPath& path);

    int root_;
    ImportBudget& budget_;
    std::string parent_path_;
    UniqueFd parent_;
};

/// Whether this is overlayfs' mark of a removed file.
bool is_whiteout_device(const struct stat& status);

}  // namespace opensandbox::image
