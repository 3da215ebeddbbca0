#include "lifecycle/host/expiry_queue.hpp"

namespace opensandbox::lifecycle {

void ExpiryQueue::set(const std::string& id, Timestamp at) {
    erase(id);
    times_.emplace(id, at);
    order_.emplace(at, id);
}

void ExpiryQueue::erase(const std::string& id) {
    auto at = times_.find(id);
    if (at == times_.end()) return;
    order_.erase({at->second, id});
    times_.erase(at);
}

std::optional<Timestamp> ExpiryQueue::next() const {
    if (order_.empty()) return std::nullopt;
    return order_.begin()->first;
}

std::vector<std::string> ExpiryQueue::take_due(Timestamp now) {
    std::vector<std::string> due;
    while (!order_.empty() && order_.begin()->first <= now) {
        due.push_back(order_.begin()->second);
        times_.erase(order_.begin()->second);
        order_.erase(order_.begin());
    }
    return due;
}

}  // namespace opensandbox::lifecycle
