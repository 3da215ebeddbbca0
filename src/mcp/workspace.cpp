#include "mcp/workspace.hpp"

#include <algorithm>

namespace opensandbox::mcp {

void Workspace::remember(sdk::Sandbox sandbox) {
    forget(sandbox.id());
    connected_.push_front(std::move(sandbox));
    if (connected_.size() > limits_.sandboxes) connected_.pop_back();
}

void Workspace::forget(std::string_view id) {
    std::erase_if(connected_, [&](const sdk::Sandbox& known) { return known.id() == id; });
}

Awaitable<sdk::Result<sdk::Sandbox>> Workspace::sandbox(Call& call) {
    const std::string id = call.text("sandbox_id");
    auto known =
        std::ranges::find_if(connected_, [&](const sdk::Sandbox& each) { return each.id() == id; });
    if (known != connected_.end()) {
        connected_.splice(connected_.begin(), connected_, known);
        co_return connected_.front();
    }
    if (!call.flag("connect_if_missing")) {
        co_return sdk::Error(sdk::ErrorCode::invalid_argument,
                             "sandbox " + id +
                                 " is not connected in this session: call sandbox_connect first, "
                                 "or set connect_if_missing to true");
    }
    auto connected = co_await sdk::Sandbox::connect(server_, id);
    if (connected) remember(*connected);
    co_return connected;
}

}  // namespace opensandbox::mcp
