#pragma once

#include "model/registry_login.hpp"
#include "net/stream.hpp"
#include "registry/options.hpp"
#include "registry/progress.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace opensandbox::registry {

/// What a push made at the registry.
struct PushedImage {
    std::string reference;   ///< where it is now
    std::string digest;      ///< of its manifest there
    std::uint64_t size = 0;  ///< bytes of its blobs
};

/// Who wants to see the progress; let go of it and it is not called any more.
using Watcher = std::shared_ptr<ProgressListener>;

/// Images between the store and registries. Runs on one event loop; what blocks runs on threads of
/// its own, which the destructor waits for. The store is borrowed.
class Registries {
  public:
    Registries(asio::any_io_executor executor, image::Store& store, RegistryOptions options);
    ~Registries();
    Registries(const Registries&) = delete;
    Registries& operator=(const Registries&) = delete;

    /// Brings an image into the store, with `login`, else the stored login of its registry, else
    /// anonymously. Pulls of one image by one login at a time are one, which ends when the last of
    /// those who wait for it is asked to stop; each of them then returns `cancelled`. On failure
    /// nothing is left. The message names registry, image and cause. `stop` is asked on the event
    /// loop.
    Awaitable<Result<image::ImageInfo>> pull(std::string reference,
                                             std::optional<model::RegistryLogin> login,
                                             Watcher watcher = nullptr, std::stop_token stop = {});
    /// Sends a stored image to the registry of `destination` (empty: of its own name), until `stop`
    /// asks to leave it.
    Awaitable<Result<PushedImage>> push(std::string reference, std::string destination,
                                        std::optional<model::RegistryLogin> login,
                                        Watcher watcher = nullptr, std::stop_token stop = {});
    /// Ends what is under way and waits for it, at most for so long. No transfer may follow.
    Awaitable<void> stop(std::chrono::milliseconds patience);
    [[nodiscard]] const RegistryOptions& options() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

/// Asks a registry whether a login opens it. `unauthenticated` when it does not.
Awaitable<Status> check_login(RegistryOptions options, std::string registry,
                              model::RegistryLogin login);

}  // namespace opensandbox::registry
