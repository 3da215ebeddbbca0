#pragma once

#include "net/address_block.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opensandbox::egress {

/// To which addresses names were resolved for a sandbox: interception asks whether a name may stand
/// at an address. One event loop.
class ResolvedNames {
  public:
    using Time = std::chrono::steady_clock::time_point;

    explicit ResolvedNames(std::size_t most = 50'000) : most_(most) {}

    /// Until then, at least as long as it was noted for before. When there are too many, what has
    /// run out goes first, then anything.
    void note(const std::string& name, const net::Address& address, Time until, Time now);
    [[nodiscard]] bool leads_to(std::string_view name, const net::Address& address, Time now) const;
    [[nodiscard]] std::size_t size() const { return names_.size(); }

  private:
    struct Entry {
        net::Address address;
        Time until;
    };
    void make_room(Time now);

    std::size_t most_;
    std::unordered_map<std::string, std::vector<Entry>> names_;
};

}  // namespace opensandbox::egress
