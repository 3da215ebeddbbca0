#include "lifecycle/host/keyed_mutex.hpp"

namespace opensandbox::lifecycle {

KeyedMutex::KeyedMutex(asio::any_io_executor executor)
    : state_(std::make_shared<State>(std::move(executor))) {}

KeyedMutex::Guard::~Guard() {
    if (!state_) return;
    auto at = state_->held.find(key_);
    if (at == state_->held.end()) return;
    if (at->second.empty()) {
        state_->held.erase(at);
        return;
    }
    auto next = std::move(at->second.front());
    at->second.pop_front();
    next->open();
}

Awaitable<KeyedMutex::Guard> KeyedMutex::lock(std::string key) {
    auto state = state_;
    auto [at, free] = state->held.try_emplace(key);
    if (!free) {
        auto turn = std::make_shared<net::Latch>(state->executor);
        at->second.push_back(turn);
        co_await turn->wait();
    }
    co_return Guard(std::move(state), std::move(key));
}

}  // namespace opensandbox::lifecycle
