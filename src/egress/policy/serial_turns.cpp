#include "egress/policy/serial_turns.hpp"

namespace opensandbox::egress {

struct SerialTurns::State {
    explicit State(asio::any_io_executor e) : executor(std::move(e)) {}
    asio::any_io_executor executor;
    bool taken = false;
    std::deque<std::shared_ptr<net::Event>> waiting;
};

SerialTurns::Turn::~Turn() {
    if (!state_) return;
    if (state_->waiting.empty()) {
        state_->taken = false;
        return;
    }
    // It stays taken: the next one has it now.
    auto next = std::move(state_->waiting.front());
    state_->waiting.pop_front();
    next->notify();
}

SerialTurns::SerialTurns(asio::any_io_executor executor)
    : state_(std::make_shared<State>(std::move(executor))) {}

Awaitable<SerialTurns::Turn> SerialTurns::take() {
    auto state = state_;
    if (!state->taken) {
        state->taken = true;
        co_return Turn(std::move(state));
    }
    auto called = std::make_shared<net::Event>(state->executor);
    state->waiting.push_back(called);
    co_await called->wait();
    co_return Turn(std::move(state));
}

}  // namespace opensandbox::egress
