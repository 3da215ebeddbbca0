#include "egress/policy/name_index.hpp"

#include <algorithm>

namespace opensandbox::egress {
namespace {

constexpr std::uint64_t kSeed = 0xcbf29ce484222325U;

/// One more character in front. Names are hashed from their end, so that the hash of each suffix
/// comes by the way.
std::uint64_t extend(std::uint64_t hash, char c) {
    return (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
}

/// The low bits choose the bucket: all bits shall count in them.
std::uint64_t finish(std::uint64_t hash) {
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15U;
    return hash ^ (hash >> 29);
}

/// Whether the dot belongs to a label: an odd number of backslashes stands before it.
bool is_escaped(std::string_view name, std::size_t dot) {
    std::size_t from = dot;
    while (from > 0 && name[from - 1] == '\\')
        --from;
    return (dot - from) % 2 == 1;
}

}  // namespace

std::size_t NameIndex::Hash::operator()(const std::string& key) const {
    std::uint64_t hash = kSeed;
    for (auto c = key.rbegin(); c != key.rend(); ++c)
        hash = extend(hash, *c);
    return finish(hash);
}

NameIndex::NameIndex(const std::vector<Rule>& rules) {
    entries_.reserve(rules.size());
    // Rules behind one without a limit are never reached.
    const auto reached = [&](const std::vector<std::uint32_t>& list) {
        return list.empty() || !rules[list.back()].target.scope().is_all();
    };
    for (std::uint32_t i = 0; i < rules.size(); ++i) {
        const Target& target = rules[i].target;
        if (target.kind() == Target::Kind::address) continue;
        Entry& entry = entries_[target.name()];
        auto& list = target.kind() == Target::Kind::name ? entry.exact : entry.wildcard;
        if (reached(list)) list.push_back(i);
        if (target.scope().is_all()) unlimited_.push_back(i);
    }
}

template <class Visit>
void NameIndex::visit(std::string_view name, const Visit& visit) const {
    if (entries_.empty() || name.empty()) return;
    std::uint64_t hash = kSeed;
    for (std::size_t i = name.size(); i-- > 0;) {
        if (name[i] == '.' && !is_escaped(name, i)) {
            const auto found = entries_.find(Hashed{name.substr(i + 1), finish(hash)});
            if (found != entries_.end()) visit(found->second.wildcard);
        }
        hash = extend(hash, name[i]);
    }
    const auto found = entries_.find(Hashed{name, finish(hash)});
    if (found != entries_.end()) visit(found->second.exact);
}

std::uint32_t NameIndex::first(std::string_view name) const {
    std::uint32_t lowest = kNone;
    visit(name, [&lowest](const std::vector<std::uint32_t>& list) {
        if (!list.empty()) lowest = std::min(lowest, list.front());
    });
    return lowest;
}

void NameIndex::find(std::string_view name, std::vector<std::uint32_t>& hits) const {
    hits.clear();
    visit(name, [&hits](const std::vector<std::uint32_t>& list) {
        hits.insert(hits.end(), list.begin(), list.end());
    });
    std::ranges::sort(hits);
    const auto last = std::ranges::find_if(
        hits, [this](std::uint32_t i) { return std::ranges::binary_search(unlimited_, i); });
    if (last != hits.end()) hits.erase(last + 1, hits.end());
}

}  // namespace opensandbox::egress
