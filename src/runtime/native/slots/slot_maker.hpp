#pragma once

#include "base/unique_fd.hpp"
#include "net/route_socket.hpp"
#include "runtime/native/host/host.hpp"

#include <sys/types.h>

#include <optional>

namespace opensandbox::runtime::native {

/// In a slot's directory: the last part of what its entrypoint wrote (agent/stream/output_log.hpp).
inline constexpr const char* kOutputFile = "output";
/// Beside it: why gVisor ended under its sandbox; empty when the entrypoint's code says it all.
inline constexpr const char* kGvisorEndFile = "gvisor-end";

/// Makes the directories of the writable layers in `path`.
Status make_layers(const std::filesystem::path& path);
/// The same for what goes over the host's /usr, unless they are there.
Status make_usr_layers(const std::filesystem::path& path);

/// A slot as its owner holds it. Closing `control` ends a blank.
struct SlotParts {
    SlotId slot;
    pid_t pid = 0;
    UniqueFd control;
    UniqueFd pidfd;
    UniqueFd user_namespace;
    UniqueFd base;  ///< the slot's directory with shifted ids, for build_overlay()
    UniqueFd usr;   ///< a private overlay over the host's /usr, for the built-in image, or none
    std::optional<net::Ipv6Address> address6;  ///< none where IPv6 was off when it was made
};

/// Makes blanks and removes what slots had. Runs in a worker process, whose parent becomes the
/// parent of the slots. Borrows the host.
class SlotMaker {
  public:
    static Result<SlotMaker> open(const Host& host);

    /// Returns when the blank waits; on failure nothing is left of it. A conflict means that the
    /// slot's address belongs to somebody else on this host.
    Result<SlotParts> make(SlotId slot, bool usr);
    /// The process that the last make() cloned, or 0. Its parent must reap it also after a failure.
    [[nodiscard]] pid_t cloned() const { return cloned_; }
    /// This executable, for processes that start it anew.
    [[nodiscard]] int program() const { return program_.get(); }
    /// Removes link, cgroups and directory, whichever exist; ends what still runs there. Without
    /// `files` the directory is only put aside (DiscardedLayers).
    Status remove(SlotId slot, bool files);

  private:
    SlotMaker(const Host& host, net::RouteSocket routes, UniqueFd program)
        : host_(&host), routes_(std::move(routes)), program_(std::move(program)) {}

    Status add_link(SlotId slot, pid_t pid);
    Status connect(SlotId slot, pid_t pid);
    Status disconnect(SlotId slot);
    [[nodiscard]] Status tell_to_begin(int control) const;
    [[nodiscard]] Result<UniqueFd> overlay_usr(const SlotParts& parts) const;

    const Host* host_;
    net::RouteSocket routes_;
    UniqueFd program_;
    pid_t cloned_ = 0;
};

}  // namespace opensandbox::runtime::native
