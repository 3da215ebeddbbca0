#pragma once

#include "base/clock.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::lifecycle {

/// When each sandbox is to be looked at for removal, ordered by time. Pure.
class ExpiryQueue {
  public:
    /// Sets or moves the time of a sandbox.
    void set(const std::string& id, Timestamp at);
    void erase(const std::string& id);
    [[nodiscard]] std::optional<Timestamp> next() const;
    /// Takes out everything due at `now`, earliest first.
    std::vector<std::string> take_due(Timestamp now);
    [[nodiscard]] std::size_t size() const { return times_.size(); }

  private:
    std::set<std::pair<Timestamp, std::string>> order_;
    std::map<std::string, Timestamp, std::less<>> times_;
};

}  // namespace opensandbox::lifecycle
