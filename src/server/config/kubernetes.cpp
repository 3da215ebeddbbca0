#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

using runtime::kubernetes::KubernetesOptions;

template <auto member>
constexpr Key option(std::string_view name, std::string_view help) {
    return keys::text<&Config::kubernetes, member>(name, help);
}

template <auto member>
constexpr Key rate(std::string_view name, std::string_view help) {
    constexpr std::int64_t kMost = 100'000;
    return keys::number<&Config::kubernetes, member>(name, 0, kMost, help);
}

constexpr std::array kProviders{keys::Word{"batchsandbox", true}};
constexpr std::array kPodPullPolicies{
    keys::Word{"Always", std::string_view("Always")},
    keys::Word{"IfNotPresent", std::string_view("IfNotPresent")},
    keys::Word{"Never", std::string_view("Never")},
};

constexpr std::array kKubernetesKeys{
    keys::file<&Config::kubernetes, &KubernetesOptions::kubeconfig>(
        "kubeconfig_path",
        "Without this line: $KUBECONFIG, the account of the pod that the server runs in, "
        "~/.kube/config.")
        .like("\"/etc/opensandbox/kubeconfig\""),
    option<&KubernetesOptions::context>("context", "Of the kubeconfig; its current one by default.")
        .like("\"staging\""),
    keys::flag<&Config::kubernetes, &KubernetesOptions::skip_verification>(
        "insecure_skip_tls_verify", "The API server's certificate is not checked."),
    option<&KubernetesOptions::name_space>(
        "namespace",
        "Of sandboxes; that of the kubeconfig or the pod by default. With [tenants] "
        "every tenant has the namespace of its name.")
        .like("\"opensandbox\""),
    keys::choice<kProviders>("workload_provider", "What a sandbox is in the cluster.",
                             "; this server has no other provider"),
    option<&KubernetesOptions::image>(
        "image",
        "This program as an image of a registry: agent and egress sidecar come from it, "
        "unless runtime.execd_image and egress.image name others.")
        .like("\"registry.example/opensandbox:1\""),
    keys::choice<kPodPullPolicies, &Config::kubernetes, &KubernetesOptions::pull_policy>(
        "image_pull_policy", "Of all containers of a sandbox's pod."),
    keys::file<&Config::kubernetes, &KubernetesOptions::template_file>(
        "batchsandbox_template_file",
        "YAML of a BatchSandbox that lies under every one that the server makes: tolerations, "
        "node selectors, volumes…")
        .like("\"/etc/opensandbox/batchsandbox.yaml\""),
    keys::seconds<&Config::kubernetes, &KubernetesOptions::create_timeout>(
        "sandbox_create_timeout_seconds", "For a pod to come up, its images with it."),
    keys::seconds<&Config::kubernetes, &KubernetesOptions::pool_timeout>(
        "pool_acquisition_timeout_seconds", "For a pod of a pool that has as many as it may."),
    keys::irregular("execd_init_resources.limits", R"({ memory = "64Mi" })",
                    "Resources of the container that installs the agent."),
    keys::irregular("execd_init_resources.requests", R"({ cpu = "10m" })"),
    rate<&KubernetesOptions::read_qps>("read_qps",
                                       "Requests a second to the API server; 0: no limit."),
    rate<&KubernetesOptions::read_burst>("read_burst", ""),
    rate<&KubernetesOptions::write_qps>("write_qps", ""),
    rate<&KubernetesOptions::write_burst>("write_burst", ""),
};

/// Of other servers of this contract: they poll where this one watches, or have another backend.
constexpr std::array<std::string_view, 8> kWithoutEffect{"informer_resync_seconds",
                                                         "informer_watch_timeout_seconds",
                                                         "sandbox_create_poll_interval_seconds",
                                                         "fastpath_endpoint",
                                                         "fastpath_timeout_seconds",
                                                         "fastpath_wait_ready_seconds",
                                                         "fastpath_resource_pool",
                                                         "template_s3_publish_secret"};

void read_kubernetes(ConfigReader& reader, Config& config) {
    KubernetesOptions& options = config.kubernetes;
    const Key none;
    keys::read_texts_table(reader, none, "kubernetes.execd_init_resources.limits",
                           options.installer_limits);
    keys::read_texts_table(reader, none, "kubernetes.execd_init_resources.requests",
                           options.installer_requests);
    for (const std::string_view name : kWithoutEffect) {
        const std::string path = "kubernetes." + std::string(name);
        if (reader.node(path)) config.ignored.push_back(path);
    }
}

void check_kubernetes(ConfigReader& reader, Config& config) {
    if (config.runtime != RuntimeType::kubernetes) return;
    KubernetesOptions& options = config.kubernetes;
    options.execd_image = config.docker.execd_image;
    options.execd_run_as_init = config.docker.execd_run_as_init;
    options.egress = config.sidecar;
    options.allowed_host_paths = config.allowed_host_paths;
    const bool own_agent = options.execd_image.empty();
    const bool own_egress = options.egress.image.empty();
    if (options.image.empty() && (own_agent || own_egress)) {
        reader.fail("kubernetes.image",
                    "must name this program's image, unless both runtime.execd_image and "
                    "egress.image name others");
    }
}

}  // namespace

constinit const Section kKubernetesSection{
    .name = "kubernetes",
    .comment =
        "Of the kubernetes runtime: sandboxes are objects of a cluster, which keeps all "
        "there is to keep. Their pods are made by `opensandbox controller`.",
    .keys = kKubernetesKeys,
    .read = read_kubernetes,
    .check = check_kubernetes};

}  // namespace opensandbox::server
