#pragma once

#include "base/error.hpp"
#include "image/store.hpp"
#include "runtime/native/records/pool_settings.hpp"
#include "runtime/native/records/warm_options.hpp"
#include "runtime/runtime.hpp"

#include <boost/asio/thread_pool.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// The `[native]` section of the configuration.
struct NativeOptions {
    std::filesystem::path state_directory;
    std::string address_range = "10.77.0.0/16";  ///< IPv4, /8 to /28; first address is the gateway
    std::string address_range6 = "auto";     ///< within fc00::/7, /64 to /112; or "auto" or "none"
    PoolSettings pool;                       ///< blank slots kept ready
    WarmOptions warm;                        ///< slots with their image and programs started
    std::string publish_host = "127.0.0.1";  ///< where agents listen on the host
    /// Of requests that state none; 0 leaves that out.
    ResourceLimits defaults = model::preset_limits();
    bool network_off = false;  ///< sandboxes that ask for no network have none
    /// storage.allowed_host_paths: absolute; host volumes lie in one of them. Empty refuses all.
    std::vector<std::string> allowed_host_paths;
    /// Brings an image that the store does not have into it, with this login if any. Null: images
    /// are never pulled.
    std::function<Awaitable<Status>(std::string reference,
                                    std::optional<model::RegistryLogin> login)>
        pull_image;
    bool pull_always = false;  ///< also an image that the store has: there may be a newer one
    /// What holds for egress control of all sandboxes, as a sidecar would have it (network 1.3).
    std::vector<std::pair<std::string, std::string>> egress;
    std::string runsc;  ///< gVisor's program: sandboxes run under it; empty: on the host's kernel
    bool rootless = false;                                ///< enter_user_namespace() was called
    std::filesystem::path executable = "/proc/self/exe";  ///< started as the spawner
};

/// Sandboxes on this host without any daemon but our own spawner. `images` is borrowed; blocking
/// parts run on `blocking`.
std::unique_ptr<Runtime> make_native_runtime(asio::any_io_executor executor,
                                             asio::thread_pool& blocking, image::Store& images,
                                             const NativeOptions& options);

// For an ordinary user (rootless.cpp): the whole server, its spawner and all sandboxes live in
// a user namespace in which this user is root and has the subordinate ids of /etc/subuid and
// /etc/subgid. Nothing of it has a right that the user does not have.

/// Moves this process, which must have one thread, into the user namespace where sandboxes of the
/// state directory live, or into a new one when none do; and into a mount namespace of its own.
/// The error says what the host lacks.
Status enter_user_namespace(const std::filesystem::path& state_directory);

}  // namespace opensandbox::runtime::native
