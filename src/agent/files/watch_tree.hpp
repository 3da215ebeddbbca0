#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace opensandbox::agent {

/// The directories that are watched and where they are: numbers of the kernel's watches, each with
/// its name in its parent, so that moving a directory moves all below it. Pure.
class WatchTree {
  public:
    /// `path` is that of `root`, the watch everything else is below.
    WatchTree(std::string path, int root);

    [[nodiscard]] int root() const { return root_; }
    [[nodiscard]] bool contains(int watch) const { return nodes_.contains(watch); }
    [[nodiscard]] std::size_t size() const { return nodes_.size(); }
    /// A directory of this name in `parent`, which must be known. Takes the place of a former one.
    void add(int watch, int parent, std::string_view name);
    [[nodiscard]] std::optional<int> child(int parent, std::string_view name) const;
    /// The path of `name` in a known directory, or of the directory itself.
    [[nodiscard]] std::string path(int watch, std::string_view name = {}) const;
    /// Puts a known directory elsewhere, in place of what is there.
    void move(int watch, int parent, std::string_view name);
    /// Forgets a directory and all below it; returns their watches.
    std::vector<int> remove(int watch);

    /// After this only what is visited or added counts as still there.
    void begin_round();
    /// False when it was visited in this round before.
    bool visit(int watch);
    /// Forgets what is not there any more; returns the watches.
    std::vector<int> forget_unvisited();

  private:
    struct Node {
        int parent;
        std::string name;
        unsigned round;  ///< when it was last seen
    };
    std::string path_;
    int root_;
    unsigned round_ = 0;
    std::unordered_map<int, Node> nodes_;
    std::map<std::pair<int, std::string>, int> children_;
};

}  // namespace opensandbox::agent
