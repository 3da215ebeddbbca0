#include "agent/files/watch_tree.hpp"

namespace opensandbox::agent {

WatchTree::WatchTree(std::string path, int root) : path_(std::move(path)), root_(root) {
    nodes_.emplace(root, Node(-1, "", 0));
}

void WatchTree::add(int watch, int parent, std::string_view name) {
    if (auto former = child(parent, name); former && *former != watch) remove(*former);
    nodes_.insert_or_assign(watch, Node(parent, std::string(name), round_));
    children_.insert_or_assign({parent, std::string(name)}, watch);
}

std::optional<int> WatchTree::child(int parent, std::string_view name) const {
    auto at = children_.find({parent, std::string(name)});
    return at == children_.end() ? std::nullopt : std::optional<int>(at->second);
}

std::string WatchTree::path(int watch, std::string_view name) const {
    std::vector<std::string_view> names;
    if (!name.empty()) names.push_back(name);
    for (auto at = nodes_.find(watch); at != nodes_.end() && at->second.parent >= 0;
         at = nodes_.find(at->second.parent)) {
        names.push_back(at->second.name);
    }
    std::string out = path_ == "/" && !names.empty() ? "" : path_;
    for (auto part = names.rbegin(); part != names.rend(); ++part)
        out.append(1, '/').append(*part);
    return out;
}

void WatchTree::move(int watch, int parent, std::string_view name) {
    auto at = nodes_.find(watch);
    if (at == nodes_.end() || watch == root_) return;
    if (auto former = child(parent, name); former && *former != watch) remove(*former);
    children_.erase({at->second.parent, at->second.name});
    at->second = Node(parent, std::string(name), round_);
    children_.insert_or_assign({parent, std::string(name)}, watch);
}

std::vector<int> WatchTree::remove(int watch) {
    std::vector<int> gone;
    auto at = nodes_.find(watch);
    if (at == nodes_.end()) return gone;
    children_.erase({at->second.parent, at->second.name});
    gone.push_back(watch);
    for (std::size_t next = 0; next < gone.size(); ++next) {
        int parent = gone[next];
        auto below = children_.lower_bound({parent, ""});
        while (below != children_.end() && below->first.first == parent) {
            gone.push_back(below->second);
            below = children_.erase(below);
        }
        nodes_.erase(parent);
    }
    return gone;
}

void WatchTree::begin_round() {
    ++round_;
    nodes_.at(root_).round = round_;
}

bool WatchTree::visit(int watch) {
    auto at = nodes_.find(watch);
    if (at == nodes_.end() || at->second.round == round_) return false;
    at->second.round = round_;
    return true;
}

std::vector<int> WatchTree::forget_unvisited() {
    std::vector<int> late;
    for (const auto& [watch, node] : nodes_) {
        if (node.round != round_) late.push_back(watch);
    }
    std::vector<int> gone;
    for (int watch : late) {
        for (int below : remove(watch))
            gone.push_back(below);
    }
    return gone;
}

}  // namespace opensandbox::agent
