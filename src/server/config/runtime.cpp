#include "egress/settings/table.hpp"
#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

/// gVisor under native sandboxes. Whether its program is there is found out by serve.
void read_native_secure_runtime(ConfigReader& reader, Config& config) {
    std::string type;
    std::string runsc = "runsc";
    reader.text("secure_runtime.type", type);
    reader.text("secure_runtime.runsc", runsc);
    if (type.empty()) return;
    if (type != "gvisor") {
        reader.fail("secure_runtime.type", "must be empty or gvisor with the native runtime");
    }
    if (runsc.empty()) reader.fail("secure_runtime.runsc", "must be a path, or a name in PATH");
    if (!config.warm.images.empty()) {
        reader.fail(
            "native.warm.images",
            "must be absent with secure_runtime.type = \"gvisor\": programs are not started "
            "ahead under gVisor");
    }
    config.runsc = runsc;
}

/// What a sidecar has and the host, which guards all native sandboxes, has not.
void refuse_settings_of_sidecars(ConfigReader& reader, const Config& config) {
    for (const auto& [name, value] : config.egress_environment) {
        const egress::Setting* known = egress::find_setting(name);
        if (known && known->configuration == egress::InConfiguration::sidecar) {
            reader.fail("egress.environment." + name,
                        "must be absent; the native runtime has no sidecars");
        }
    }
}

}  // namespace

// What this server cannot do must not be configured in vain where it guards something.

void read_runtime(ConfigReader& reader, Config& config) {
    std::string type = "native";
    reader.text("runtime.type", type);
    if (type == "docker") {
        config.runtime = RuntimeType::docker;
        config.publish_host = config.docker.publish_host;
        read_secure_runtime(reader, config);
        return;
    }
    if (type != "native") {
        reader.fail("runtime.type", "must be native or docker; this server has no other runtime");
    }
    read_native_secure_runtime(reader, config);
    refuse_settings_of_sidecars(reader, config);
}

void read_store(ConfigReader& reader, Config& config) {
    std::string store = "sqlite";
    reader.text("store.type", store);
    if (store != "sqlite") reader.fail("store.type", "must be sqlite");
    config.store_path = reader.path("store.path");
}

void read_ingress(ConfigReader& reader, Config&) {
    std::string mode = "direct";
    reader.text("ingress.mode", mode);
    if (mode != "direct")
        reader.fail("ingress.mode", "must be direct; only the kubernetes runtime has a gateway");
    if (reader.node("ingress.secure_access"))
        reader.fail("ingress.secure_access",
                    "must be absent; signed endpoints need an ingress gateway");
}

}  // namespace opensandbox::server
