#include "kube/object/list_order.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace opensandbox::kube {
namespace {

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

/// Where each name is first.
class Places {
  public:
    explicit Places(const std::vector<std::string>& names) {
        for (const std::string& name : names)
            places_.try_emplace(name, places_.size());
    }
    [[nodiscard]] std::size_t of(const std::string& name) const {
        const auto found = places_.find(name);
        return found == places_.end() ? kNowhere : found->second;
    }

  private:
    std::unordered_map<std::string_view, std::size_t> places_;
};

}  // namespace

std::vector<std::size_t> list_order(const std::vector<std::string>& merged,
                                    const std::vector<std::string>& wanted,
                                    const std::vector<std::string>& live) {
    const Places wish(wanted);
    const Places past(live);
    std::vector<std::size_t> named;
    std::vector<std::size_t> others;
    for (std::size_t at = 0; at < merged.size(); ++at)
        (wish.of(merged[at]) == kNowhere ? others : named).push_back(at);
    std::ranges::sort(named, {},
                      [&](std::size_t at) { return std::pair(wish.of(merged[at]), at); });
    std::ranges::sort(others, {},
                      [&](std::size_t at) { return std::pair(past.of(merged[at]), at); });

    std::vector<std::size_t> order;
    auto other = others.begin();
    for (std::size_t at : named) {
        const std::size_t place = past.of(merged[at]);
        while (place != kNowhere && other != others.end() && past.of(merged[*other]) < place)
            order.push_back(*other++);
        order.push_back(at);
    }
    order.insert(order.end(), other, others.end());
    return order;
}

}  // namespace opensandbox::kube
