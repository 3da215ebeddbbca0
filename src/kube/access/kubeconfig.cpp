#include "kube/access/kubeconfig.hpp"

#include "base/base64.hpp"
#include "http/url.hpp"
#include "kube/access/bearer_token.hpp"
#include "kube/access/kubeconfig_entries.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace opensandbox::kube {
namespace {

/// Reads members of one entry; the first problem stands in status().
class EntryReader {
  public:
    explicit EntryReader(const KubeconfigEntry& entry) : entry_(entry) {}

    std::string text(std::string_view name) {
        return take(json::get_string(entry_.content, name)).value_or("");
    }
    bool flag(std::string_view name) {
        return take(json::get_bool(entry_.content, name)).value_or(false);
    }
    /// A path, made absolute by the file's folder.
    std::string path(std::string_view name) {
        std::string given = text(name);
        if (given.empty() || given.front() == '/') return given;
        return (entry_.file.parent_path() / given).lexically_normal().string();
    }
    /// Base64 of "NAME-data".
    std::string data(const std::string& name) {
        const std::string encoded = text(name + "-data");
        auto decoded = from_base64(encoded);
        if (decoded) return *decoded;
        fail(invalid(name + "-data: is no base64"));
        return {};
    }
    void refuse(std::string_view name) {
        if (json::find(entry_.content, name))
            fail(invalid(std::string(name) + ": is not supported"));
    }
    void fail(const Error& error) {
        if (status_) status_ = error.within(entry_.place);
    }
    [[nodiscard]] const Status& status() const { return status_; }
    [[nodiscard]] const json::object& content() const { return entry_.content; }

  private:
    template <class T>
    std::optional<T> take(Result<std::optional<T>> found) {
        if (found) return std::move(*found);
        fail(found.error());
        return std::nullopt;
    }

    const KubeconfigEntry& entry_;
    Status status_;
};

Status read_cluster(const KubeconfigEntry& entry, Cluster& into) {
    EntryReader reader(entry);
    into.server = reader.text("server");
    while (into.server.ends_with('/'))
        into.server.pop_back();
    if (into.server.empty()) {
        reader.fail(invalid("server: is missing"));
    } else if (!http::parse_url(into.server)) {
        // Not in the words of that error, which repeat a password that stands in the URL.
        reader.fail(invalid("server: must be an http:// or https:// URL of a host, and a path"));
    }
    into.tls.ca_file = reader.path("certificate-authority");
    into.tls.ca_pem = reader.data("certificate-authority");
    into.tls.server_name = reader.text("tls-server-name");
    into.tls.verify = !reader.flag("insecure-skip-tls-verify");
    reader.refuse("proxy-url");
    return reader.status();
}

Result<CredentialPlugin> read_plugin(const json::object& from) {
    constexpr std::array<std::string_view, 2> kVersions{"client.authentication.k8s.io/v1",
                                                        "client.authentication.k8s.io/v1beta1"};
    constexpr std::array<std::string_view, 2> kModes{"Never", "IfAvailable"};
    CredentialPlugin plugin;
    for (auto [name, member] :
         {std::pair{"apiVersion", &plugin.api_version}, std::pair{"command", &plugin.command},
          std::pair{"installHint", &plugin.install_hint}}) {
        auto text = json::get_string(from, name);
        if (!text) return text.error();
        *member = text->value_or("");
    }
    if (std::ranges::find(kVersions, plugin.api_version) == kVersions.end()) {
        return invalid("apiVersion: must be " + std::string(kVersions[0]) + " or " +
                       std::string(kVersions[1]));
    }
    if (plugin.command.empty()) return invalid("command: is missing");
    auto mode = json::get_string(from, "interactiveMode");
    if (!mode) return mode.error();
    if (*mode && std::ranges::find(kModes, **mode) == kModes.end())
        return invalid("interactiveMode: must be Never or IfAvailable: there is nobody to ask");
    auto arguments = json::get_strings(from, "args");
    if (!arguments) return arguments.error();
    plugin.arguments = arguments->value_or(std::vector<std::string>());
    auto wants_cluster = json::get_bool(from, "provideClusterInfo");
    if (!wants_cluster) return wants_cluster.error();
    plugin.wants_cluster = wants_cluster->value_or(false);
    const json::value* variables = json::find(from, "env");
    if (!variables) return plugin;
    if (!variables->is_array()) return invalid("env: must be a list");
    for (const json::value& variable : variables->get_array()) {
        if (!variable.is_object()) return invalid("env: must hold objects");
        auto name = json::get_string(variable.get_object(), "name");
        auto value = json::get_string(variable.get_object(), "value");
        if (!name || !value) return (name ? value.error() : name.error()).within("env");
        if (name->value_or("").empty()) return invalid("env: name: is missing");
        plugin.environment.emplace_back(**name, value->value_or(""));
    }
    return plugin;
}

Status read_user(const KubeconfigEntry& entry, Cluster& into) {
    EntryReader reader(entry);
    into.tls.cert_file = reader.path("client-certificate");
    into.tls.cert_pem = reader.data("client-certificate");
    into.tls.key_file = reader.path("client-key");
    into.tls.key_pem = reader.data("client-key");
    into.token = reader.text("token");
    if (!into.token.empty() && !is_bearer_token(into.token))
        reader.fail(invalid(std::string("token: ") + kTokenRule));
    into.token_file = reader.path("tokenFile");
    into.username = reader.text("username");
    into.password = reader.text("password");
    for (const auto* unsupported : {"auth-provider", "as", "as-groups", "as-uid", "as-user-extra"})
        reader.refuse(unsupported);
    if (const json::value* exec = json::find(reader.content(), "exec")) {
        if (!exec->is_object()) {
            reader.fail(invalid("exec: must be an object"));
        } else if (auto plugin = read_plugin(exec->get_object()); plugin) {
            into.plugin = std::move(*plugin);
            // One that is named with a folder lies beside the file that names it.
            if (into.plugin->command.find('/') != std::string::npos)
                into.plugin->command = (entry.file.parent_path() / into.plugin->command).string();
        } else {
            reader.fail(plugin.error().within("exec"));
        }
    }
    return reader.status();
}

Result<const KubeconfigEntry*> entry_of(const KubeconfigEntries& entries, const std::string& name,
                                        std::string_view kind) {
    const auto found = entries.find(name);
    if (found != entries.end()) return &found->second;
    return Error(ErrorCode::not_found,
                 "kubeconfig: there is no " + std::string(kind) + " \"" + name + "\"");
}

}  // namespace

Result<Cluster> read_kubeconfig(const std::vector<KubeconfigFile>& files,
                                const std::string& context) {
    auto merged = merge_kubeconfigs(files);
    if (!merged) return merged.error();
    const std::string& chosen = context.empty() ? merged->current_context : context;
    if (chosen.empty()) return invalid("kubeconfig: current-context: is missing");
    auto entry = entry_of(merged->contexts, chosen, "context");
    if (!entry) return entry.error();
    EntryReader reader(**entry);
    Cluster cluster;
    cluster.name_space = reader.text("namespace");
    if (cluster.name_space.empty()) cluster.name_space = "default";
    const std::string cluster_name = reader.text("cluster");
    const std::string user_name = reader.text("user");
    if (cluster_name.empty()) reader.fail(invalid("cluster: is missing"));
    if (!reader.status()) return reader.status().error();
    auto cluster_entry = entry_of(merged->clusters, cluster_name, "cluster");
    if (!cluster_entry) return cluster_entry.error();
    if (auto ok = read_cluster(**cluster_entry, cluster); !ok) return ok.error();
    if (user_name.empty()) return cluster;
    auto user_entry = entry_of(merged->users, user_name, "user");
    if (!user_entry) return user_entry.error();
    if (auto ok = read_user(**user_entry, cluster); !ok) return ok.error();
    return cluster;
}

}  // namespace opensandbox::kube
