#pragma once

#include "runtime/docker/docker_options.hpp"
#include "runtime/docker/engine/engine.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <string>
#include <string_view>

namespace opensandbox::runtime::docker {

/// What our own image of the egress sidecar is made of.
struct SidecarImageParts {
    std::string program;       ///< this executable
    std::string roots;         ///< certificates (PEM) that its upstreams are verified with
    std::string architecture;  ///< "amd64"
    std::string reference;     ///< the image's name and tag
    std::string version;       ///< value of its label
};

/// The image as an archive that an engine loads. The same parts make the same bytes, and so the
/// same image id: whoever loads it a second time changes nothing. Pure.
std::string sidecar_image_archive(const SidecarImageParts& parts);

/// The image of the egress sidecar: `egress.image`, pulled when it is missing, or our own:
/// `opensandbox-egress:<version>` with this executable and the host's root certificates, loaded
/// into the engine when it is not there and never removed (sandboxes of other servers may run it).
class SidecarImage {
  public:
    /// All are borrowed.
    SidecarImage(asio::any_io_executor executor, Engine& engine, asio::thread_pool& blocking,
                 const DockerOptions& options);

    /// The reference, once the engine has it. Concurrent calls load once. `architecture` is the
    /// engine's; `unsupported` when it is another than this program's.
    Awaitable<Result<std::string>> ensure(std::string architecture);

  private:
    Awaitable<Result<std::string>> provide(std::string architecture);
    Awaitable<Status> pull();
    Awaitable<Status> load();

    Engine& engine_;
    asio::thread_pool& blocking_;
    const DockerOptions& options_;
    std::string version_;  ///< empty: not known yet
    std::string reference_;
    bool busy_ = false;
    asio::steady_timer done_;
};

}  // namespace opensandbox::runtime::docker
