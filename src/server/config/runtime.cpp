#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

constexpr std::array kRuntimes{
    keys::Word{"native", RuntimeType::native},
    keys::Word{"docker", RuntimeType::docker},
    keys::Word{"kubernetes", RuntimeType::kubernetes},
};

constexpr std::array kRuntimeKeys{
    keys::choice<kRuntimes, &Config::runtime>("type", "native, docker or kubernetes.",
                                              "; this server has no other runtime"),
    keys::text<&Config::docker, &runtime::docker::DockerOptions::execd_image>(
        "execd_image",
        "With docker and kubernetes: the agent comes from this image, not from the server's "
        "executable."),
    keys::flag<&Config::docker, &runtime::docker::DockerOptions::execd_run_as_init>(
        "execd_run_as_init",
        "Sets EXECD_INIT for such an agent; the server's own is process 1 anyway."),
};

constexpr std::array kSecureRuntimeKeys{
    keys::irregular("type", R"("")"),
    keys::irregular("runsc", R"("runsc")", "A path, or a name in PATH."),
    keys::irregular("docker_runtime", R"("runsc")"),
    keys::irregular("k8s_runtime_class", R"("gvisor")"),
};

// A configuration that asks for a gateway is refused.
constexpr std::array kIngressModes{keys::Word{"direct", true}};
constexpr std::array kIngressKeys{
    keys::choice<kIngressModes>("mode", "Sandboxes are reached without a gateway.",
                                "; this server has no gateway"),
};

// What this server cannot do must not be configured in vain where it guards something.

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
    config.runsc = runsc;
}

void read_docker_secure_runtime(ConfigReader& reader, runtime::docker::DockerOptions& options) {
    reader.text("secure_runtime.type", options.secure_runtime);
    reader.text("secure_runtime.docker_runtime", options.oci_runtime);
    if (options.secure_runtime.empty()) {
        options.oci_runtime.clear();
        return;
    }
    if (options.secure_runtime != "gvisor" && options.secure_runtime != "kata") {
        reader.fail("secure_runtime.type", "must be empty, gvisor or kata with the docker runtime");
    }
    if (options.oci_runtime.empty()) {
        reader.fail("secure_runtime.docker_runtime", "must name the engine's runtime");
    }
}

void read_runtime_class(ConfigReader& reader, std::string& runtime_class) {
    std::string type;
    reader.text("secure_runtime.type", type);
    reader.text("secure_runtime.k8s_runtime_class", runtime_class);
    if (type.empty()) {
        runtime_class.clear();
        return;
    }
    if (runtime_class.empty())
        reader.fail("secure_runtime.k8s_runtime_class", "must name a RuntimeClass of the cluster");
}

void read_secure_runtime(ConfigReader& reader, Config& config) {
    if (config.runtime == RuntimeType::docker) {
        read_docker_secure_runtime(reader, config.docker);
    } else if (config.runtime == RuntimeType::kubernetes) {
        read_runtime_class(reader, config.kubernetes.runtime_class);
    } else {
        read_native_secure_runtime(reader, config);
    }
}

void refuse_warm_under_gvisor(ConfigReader& reader, Config& config) {
    if (config.runsc.empty() || config.warm.images.empty()) return;
    reader.fail("native.warm.images",
                "must be absent with secure_runtime.type = \"gvisor\": programs are not started "
                "ahead under gVisor");
}

void publish_by_runtime(ConfigReader&, Config& config) {
    if (config.runtime == RuntimeType::docker) config.publish_host = config.docker.publish_host;
}

void refuse_gateway(ConfigReader& reader, Config&) {
    if (reader.node("ingress.secure_access"))
        reader.fail("ingress.secure_access",
                    "must be absent; signed endpoints need an ingress gateway");
}

}  // namespace

constinit const Section kRuntimeSection{
    .name = "runtime", .keys = kRuntimeKeys, .check = publish_by_runtime};
constinit const Section kSecureRuntimeSection{
    .name = "secure_runtime",
    .comment =
        "\"gvisor\": native sandboxes run on gVisor's kernel instead of the host's; runsc "
        "(its own release, or a build without cgo) must be installed. With the docker "
        "runtime \"gvisor\" or \"kata\", and docker_runtime names the engine's runtime; with "
        "kubernetes k8s_runtime_class names the RuntimeClass of pods.",
    .keys = kSecureRuntimeKeys,
    .read = read_secure_runtime,
    .check = refuse_warm_under_gvisor};
constinit const Section kIngressSection{
    .name = "ingress", .keys = kIngressKeys, .read = refuse_gateway};

}  // namespace opensandbox::server
