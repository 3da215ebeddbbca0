#pragma once

#include "base/error.hpp"
#include "net/stream.hpp"

#include <functional>
#include <memory>

namespace opensandbox::agent {

/// Takes over the signals of this process: handlers inherited from a parent are reset, the signals
/// that an agent acts on are blocked and read from a descriptor on the event loop. Works after a
/// fork without exec, and as process 1, where an unblocked signal without a handler would be lost.
class Signals {
  public:
    static Result<std::unique_ptr<Signals>> take(asio::any_io_executor executor,
                                                 std::function<void(int number)> on_signal);
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

  private:
    struct State;
    explicit Signals(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::agent
