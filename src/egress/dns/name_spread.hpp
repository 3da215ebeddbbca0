#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace opensandbox::egress::dns {

/// How many different names below one domain one client has sent on in the current minute: data
/// carried out in names needs many. Memory is bounded: at most 256 domains, of each at most the
/// limit.
class NameSpread {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// Counts the name; false when it would be one more than `limit` allows (0 is no limit). A name
    /// that was counted in this minute stays allowed.
    bool admit(std::string_view domain, std::string_view name, std::size_t limit, Time now);
    /// Whether nothing counted matters any more.
    [[nodiscard]] bool idle(Time now) const;

  private:
    struct Domain {
        Time start;
        std::unordered_set<std::size_t> names;
    };
    void make_room();

    std::unordered_map<std::string, Domain> domains_;
};

}  // namespace opensandbox::egress::dns
