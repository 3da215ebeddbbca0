#pragma once

#include "egress/policy/policy.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opensandbox::egress {

/// Which rules speak of a name, found by its suffixes: the cost is that of the name's length, not
/// of the number of rules.
class NameIndex {
  public:
    NameIndex() = default;
    explicit NameIndex(const std::vector<Rule>& rules);

    /// The indexes of the rules for a name, ascending, up to the first that is not limited to
    /// ports; `name` is in lower case without a dot at its end. `hits` is cleared first.
    void find(std::string_view name, std::vector<std::uint32_t>& hits) const;
    /// The first of them; kNone when there is none.
    [[nodiscard]] std::uint32_t first(std::string_view name) const;

    static constexpr std::uint32_t kNone = UINT32_MAX;

  private:
    struct Entry {
        std::vector<std::uint32_t> exact;
        std::vector<std::uint32_t> wildcard;
    };
    /// A name with the hash of it; a suffix of a longer name shares the work.
    struct Hashed {
        std::string_view text;
        std::uint64_t hash;
    };
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(const Hashed& key) const { return key.hash; }
        std::size_t operator()(const std::string& key) const;
    };
    struct Equal {
        using is_transparent = void;
        bool operator()(const std::string& a, const std::string& b) const { return a == b; }
        bool operator()(const Hashed& a, const std::string& b) const { return a.text == b; }
        bool operator()(const std::string& a, const Hashed& b) const { return a == b.text; }
    };

    /// Calls `visit` with every list of rules that speaks of the name.
    template <class Visit>
    void visit(std::string_view name, const Visit& visit) const;

    std::unordered_map<std::string, Entry, Hash, Equal> entries_;
    std::vector<std::uint32_t> unlimited_;  ///< rules for names that cover all ports, ascending
};

}  // namespace opensandbox::egress
