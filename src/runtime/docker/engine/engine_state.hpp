#pragma once

#include "runtime/docker/engine/engine.hpp"
#include "runtime/docker/engine/transport.hpp"

namespace opensandbox::runtime::docker {

struct Engine::State {
    State(asio::any_io_executor executor, EngineAddress address, EngineOptions options)
        : transport(std::move(executor), std::move(address), options) {}

    /// For calls whose answer's body says nothing.
    Awaitable<Status> run(EngineCall call) {
        auto reply = co_await transport.call(std::move(call));
        if (!reply) co_return reply.error();
        co_return Status();
    }
    /// The same for a removal: what is not there needs none.
    Awaitable<Status> run_unless_missing(EngineCall call) {
        auto done = co_await run(std::move(call));
        if (done || done.error().code() == ErrorCode::not_found) co_return Status();
        co_return done.error();
    }
    /// A decoded document, its error named.
    template <class T>
    Result<T> named(Result<T> decoded) const {
        if (!decoded) return transport.named(decoded.error());
        return decoded;
    }

    Transport transport;
};

}  // namespace opensandbox::runtime::docker
