#include "agent/isolated/capabilities.hpp"

#include "agent/isolated/landlock.hpp"
#include "version.hpp"

#include <unistd.h>

namespace opensandbox::agent {
namespace {

json::object layer(std::string_view state, std::string_view message) {
    return {{"state", state}, {"message", message}};
}

json::object hardening(bool available, const IsolationConfig& config, bool init) {
    json::object out;
    // A broker stands for an agent that is process 1.
    const bool first = ::getpid() == 1 || config.brokered();
    out["init_mode"] = init ? (first ? "pid1" : "subreaper") : "none";
    if (!available) {
        out["signal_shield"] = false;
        for (const char* name : {"cap_drop", "seccomp", "landlock", "ebpf"})
            out[name] = layer("unsupported", "isolation is not available");
        return out;
    }
    // Every session has process ids of its own, and its first process is deaf to the others.
    out["signal_shield"] = true;
    out["cap_drop"] = config.kept_capabilities == 0
                          ? layer("active", "strict keeps none, balanced a container's few")
                          : layer("degraded", "the configuration keeps further capabilities");
    out["seccomp"] = config.hardening
                         ? layer("active", "namespaces, mounts and the kernel are out of reach")
                         : layer("disabled", "hardening.enabled is false");
    if (landlock_version() == 0) {
        out["landlock"] = layer("unsupported", "this kernel has no landlock");
    } else if (config.landlock && config.hardening) {
        out["landlock"] = layer("active", "writes are limited to the mounts of the session");
    } else {
        out["landlock"] = layer("disabled", "landlock.enabled is not set");
    }
    out["ebpf"] = layer("unsupported", "not used here");
    return out;
}

}  // namespace

std::string capabilities_json(const Isolation::Abilities& abilities, const IsolationConfig& config,
                              bool init) {
    json::object out;
    out["available"] = abilities.available;
    out["isolator"] = "opensandbox";
    out["version"] = kVersion;
    if (!abilities.message.empty()) out["message"] = abilities.message;
    out["setpriv_available"] = abilities.available;
    out["userns_available"] = abilities.userns;
    out["commit_supported"] = abilities.overlay;
    out["diff_supported"] = abilities.overlay;
    out["hardening"] = hardening(abilities.available, config, init);
    return json::serialize(json::value(std::move(out)));
}

}  // namespace opensandbox::agent
