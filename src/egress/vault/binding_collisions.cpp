#include "egress/vault/binding_collisions.hpp"

#include "egress/vault/vault_documents.hpp"

#include <algorithm>
#include <bitset>
#include <string_view>
#include <unordered_map>

namespace opensandbox::egress {
namespace {

using Members = std::bitset<kMaxVaultItems>;

/// What of a match is compared again and again, in order.
struct Sorted {
    explicit Sorted(const BindingMatch& match) {
        for (const std::string& method : match.methods)
            methods.emplace_back(method);
        for (const PathPattern& path : match.paths)
            paths.push_back(&path);
        std::ranges::sort(methods);
        // What a prefix matches stands right behind it.
        std::ranges::sort(paths, [](const PathPattern* a, const PathPattern* b) {
            return a->path != b->path ? a->path < b->path : a->prefix && !b->prefix;
        });
    }
    std::vector<std::string_view> methods;
    std::vector<const PathPattern*> paths;
};

bool have_common(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
    auto x = a.begin();
    auto y = b.begin();
    while (x != a.end() && y != b.end()) {
        const int order = x->compare(*y);
        if (order == 0) return true;
        order < 0 ? ++x : ++y;
    }
    return false;
}

bool have_common(const auto& a, const auto& b) {
    return std::ranges::any_of(
        a, [&](const auto& item) { return std::ranges::find(b, item) != b.end(); });
}

/// Walks both lists as one, in order, with the prefixes of each that hold the path at hand.
bool paths_collide(const Sorted& a, const Sorted& b) {
    std::vector<const PathPattern*> open[2];
    const PathPattern* last[2] = {nullptr, nullptr};
    auto x = a.paths.begin();
    auto y = b.paths.begin();
    while (x != a.paths.end() || y != b.paths.end()) {
        bool first = y == b.paths.end();
        if (!first && x != a.paths.end()) {
            first =
                (*x)->path != (*y)->path ? (*x)->path < (*y)->path : (*x)->prefix >= (*y)->prefix;
        }
        const PathPattern* path = first ? *x++ : *y++;
        for (auto& list : open) {
            while (!list.empty() && !path->path.starts_with(list.back()->path))
                list.pop_back();
        }
        const int own = first ? 0 : 1;
        if (!open[1 - own].empty()) return true;
        if (last[1 - own] && last[1 - own]->path == path->path) return true;
        if (path->prefix) open[own].push_back(path);
        last[own] = path;
    }
    return false;
}

/// Which bindings have a host in common with each other.
class HostGroups {
  public:
    explicit HostGroups(const std::vector<Binding>& bindings) {
        for (std::size_t i = 0; i < bindings.size(); ++i) {
            for (const HostPattern& host : bindings[i].match.hosts) {
                (host.wildcard ? wildcard_ : exact_)[host.name].set(i);
            }
        }
    }

    /// Those with a host in common; of wildcards, the same or wider ones.
    [[nodiscard]] Members of(const Binding& binding) const {
        Members members;
        for (const HostPattern& host : binding.match.hosts) {
            if (!host.wildcard) {
                members |= find(exact_, host.name);
                continue;
            }
            std::string_view name = host.name;
            while (true) {
                members |= find(wildcard_, name);
                const auto dot = name.find('.');
                if (dot == name.npos) break;
                name.remove_prefix(dot + 1);
            }
        }
        return members;
    }

  private:
    using Groups = std::unordered_map<std::string_view, Members>;

    static Members find(const Groups& groups, std::string_view name) {
        const auto found = groups.find(name);
        return found == groups.end() ? Members() : found->second;
    }

    Groups exact_;
    Groups wildcard_;
};

}  // namespace

std::optional<std::pair<std::size_t, std::size_t>> find_collision(
    const std::vector<Binding>& bindings) {
    const HostGroups groups(bindings);
    std::vector<Sorted> sorted;
    for (const Binding& binding : bindings)
        sorted.emplace_back(binding.match);
    for (std::size_t i = 0; i < bindings.size(); ++i) {
        const Members members = groups.of(bindings[i]);
        for (std::size_t j = 0; j < bindings.size(); ++j) {
            if (j == i || !members.test(j)) continue;
            const BindingMatch& a = bindings[i].match;
            const BindingMatch& b = bindings[j].match;
            if (have_common(sorted[i].methods, sorted[j].methods) &&
                have_common(a.schemes, b.schemes) && have_common(a.ports, b.ports) &&
                paths_collide(sorted[i], sorted[j])) {
                return std::minmax(i, j);
            }
        }
    }
    return std::nullopt;
}

}  // namespace opensandbox::egress
