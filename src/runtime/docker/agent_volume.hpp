#pragma once

#include "runtime/docker/docker_options.hpp"
#include "runtime/docker/engine/engine.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <string>

namespace opensandbox::runtime::docker {

/// The agent at the engine: a named volume per version, filled once through a container that is
/// never started, and mounted read-only by every sandbox. It holds the program and the names
/// `execd` and `bootstrap.sh` for it; with `runtime.execd_image`, what the published image has. A
/// second, empty volume says that the first is complete; volumes of other versions stay as long as
/// containers may use them.
class AgentVolume {
  public:
    /// All are borrowed.
    AgentVolume(asio::any_io_executor executor, Engine& engine, asio::thread_pool& blocking,
                const DockerOptions& options);

    /// Finds out which version this server has. Once, before the rest.
    Awaitable<Status> identify();
    /// The volume's name, after it was filled when it has to be. `image` is any image that the
    /// engine has. Concurrent calls fill once.
    Awaitable<Result<std::string>> ensure(std::string image);
    /// Looks again at the next ensure(): somebody may have removed the volume.
    void doubt() { complete_ = false; }
    /// Whether the agent is the one of runtime.execd_image.
    [[nodiscard]] bool foreign() const { return !options_.execd_image.empty(); }

  private:
    Awaitable<Result<bool>> is_complete();
    Awaitable<Status> fill(std::string image);
    Awaitable<Status> fill_through(std::string container);
    Awaitable<Status> copy_from_image(std::string container);
    Awaitable<Result<std::string>> open_container(std::string image);

    Engine& engine_;
    asio::thread_pool& blocking_;
    const DockerOptions& options_;
    std::string name_;
    std::string version_;
    bool complete_ = false;
    bool filling_ = false;
    asio::steady_timer filled_;
};

}  // namespace opensandbox::runtime::docker
