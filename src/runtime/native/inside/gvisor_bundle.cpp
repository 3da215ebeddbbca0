#include "runtime/native/inside/gvisor_bundle.hpp"

#include "json/document.hpp"

#include <array>
#include <vector>

namespace opensandbox::runtime::native {

namespace {

/// Inside, as in containers.
constexpr const char* kAgentPath = "/opt/opensandbox/bin/opensandbox";

/// sandbox_capabilities() by name.
constexpr std::array kCapabilityNames{"CAP_CHOWN",      "CAP_DAC_OVERRIDE", "CAP_FOWNER",
                                      "CAP_FSETID",     "CAP_KILL",         "CAP_SETGID",
                                      "CAP_SETUID",     "CAP_SETPCAP",      "CAP_NET_BIND_SERVICE",
                                      "CAP_SYS_CHROOT", "CAP_SETFCAP"};

json::object mount(std::string_view target, std::string_view type, std::string_view source,
                   std::initializer_list<std::string_view> options) {
    json::array list;
    for (const std::string_view option : options)
        list.emplace_back(option);
    json::object out;
    out["destination"] = target;
    out["type"] = type;
    out["source"] = source;
    out["options"] = std::move(list);
    return out;
}

json::object volume(const VolumeMount& wanted, std::size_t number) {
    const std::string_view access = wanted.read_only ? "ro" : "rw";
    if (wanted.source.empty()) {
        const std::string size = "size=" + std::to_string(wanted.size);
        return mount(wanted.target, "tmpfs", "tmpfs", {"nosuid", "nodev", "mode=1777", size});
    }
    return mount(wanted.target, "bind", gvisor_volume_path(number),
                 {"bind", "nosuid", "nodev", access});
}

json::array mounts(const CreateRequest& request) {
    json::array out;
    out.emplace_back(mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}));
    out.emplace_back(mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}));
    out.emplace_back(mount("/dev", "tmpfs", "tmpfs", {"nosuid", "mode=755"}));
    out.emplace_back(mount("/dev/pts", "devpts", "devpts", {"nosuid", "noexec"}));
    out.emplace_back(
        mount("/dev/shm", "tmpfs", "shm", {"nosuid", "noexec", "nodev", "mode=1777", "size=64m"}));
    // Without this gVisor puts a file system in memory on an empty /tmp: what is written there is
    // part of the writable layer, and of snapshots.
    out.emplace_back(mount("/tmp", "bind", "/new/tmp", {"bind", "rw"}));
    out.emplace_back(
        mount(kAgentPath, "bind", kGvisorAgentSource, {"bind", "ro", "nosuid", "nodev"}));
    for (const std::string name : {"hosts", "hostname", "resolv.conf"})
        out.emplace_back(mount("/etc/" + name, "bind", "/files/" + name, {"bind", "rw"}));
    for (std::size_t i = 0; i < request.volumes.size(); ++i)
        out.emplace_back(volume(request.volumes[i], i));
    return out;
}

json::object process() {
    json::object capabilities;
    json::array names;
    for (const char* name : kCapabilityNames)
        names.emplace_back(name);
    for (const char* set : {"bounding", "effective", "permitted"})
        capabilities[set] = names;
    json::object out;
    out["terminal"] = false;
    out["user"] = json::object{{"uid", 0}, {"gid", 0}};
    out["args"] = json::array{kAgentPath, "guest"};
    out["env"] = json::array{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
    out["cwd"] = "/";
    out["noNewPrivileges"] = true;
    out["capabilities"] = std::move(capabilities);
    return out;
}

json::array namespaces() {
    json::array out;
    for (const char* kind : {"pid", "ipc", "uts", "mount"})
        out.emplace_back(json::object{{"type", kind}});
    out.emplace_back(json::object{{"type", "network"}, {"path", kGvisorNetworkPath}});
    return out;
}

}  // namespace

std::string gvisor_volume_path(std::size_t number) {
    return "/volumes/" + std::to_string(number);
}

std::string format_bundle(const CreateRequest& request) {
    json::object out;
    out["ociVersion"] = "1.0.2";
    out["process"] = process();
    out["root"] = json::object{{"path", "/new"}, {"readonly", false}};
    out["hostname"] = request.plan.network.hostname;
    out["mounts"] = mounts(request);
    out["linux"] = json::object{{"namespaces", namespaces()}};
    return json::serialize(out);
}

}  // namespace opensandbox::runtime::native
