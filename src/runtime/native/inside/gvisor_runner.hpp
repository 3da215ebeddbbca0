#pragma once

#include "agent/ground/publish.hpp"
#include "base/unique_fd.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/records/protocol.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// Process 1 of a slot under gVisor while the sandbox lives: runs `runsc`, tells the spawner when
/// the agent inside is ready, hands connections on to it, reaps, and ends as the sandbox does.
class GvisorRunner {
  public:
    struct Parts {
        UniqueFd runsc;
        UniqueFd request;  ///< what the guest reads
        UniqueFd output;
        UniqueFd end;  ///< gets why gVisor ended when it did so by itself
        std::vector<agent::Publication> publications;
    };

    GvisorRunner(std::uint64_t request, Parts parts);

    /// Returns the sandbox's exit code. `fence` is called when runsc has started: what this
    /// process needs no more it then gives up.
    int run(const std::function<Status()>& fence);

  private:
    Status start();
    void await_child();
    void on_child(int status);
    Awaitable<void> await_guest();
    /// What the guest has said, if it has; false when it will say nothing more.
    bool hear();
    void take(const Message& message);
    void begin_service();

    std::uint64_t request_;
    Parts parts_;
    asio::io_context loop_{1};
    asio::signal_set children_;
    asio::posix::stream_descriptor guest_{loop_};
    pid_t runsc_ = 0;
    bool ready_ = false;
    std::optional<int> ended_;  ///< the entrypoint's code
    int code_ = 1;
};

}  // namespace opensandbox::runtime::native
