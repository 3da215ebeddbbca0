#include "registry/location.hpp"
#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

using registry::RegistryOptions;

void read_hosts(ConfigReader& reader, const Key& key, std::string_view path,
                std::vector<std::string>& into) {
    const toml::node* found = reader.node(path);
    if (!found) return;
    const toml::array* list = found->as_array();
    if (!list) return reader.fail(path, key.rule);
    for (const toml::node& item : *list) {
        auto host = item.value_exact<std::string>();
        if (!host || host->find('/') != std::string::npos || !registry::locate_registry(*host))
            return reader.fail(path, key.rule);
        into.push_back(std::move(*host));
    }
}

template <auto member>
constexpr Key hosts(std::string_view name, std::string_view help) {
    Key key = keys::value<read_hosts, &Config::registry, member>(name, help);
    key.rule = "must be a list of hosts, each with an optional port";
    return key.like("[\"registry.example:5000\"]");
}

constexpr std::array kRegistryKeys{
    keys::file<&Config::registry, &RegistryOptions::ca_file>(
        "ca_file",
        "PEM file of authorities that registries are checked with, not the system's roots.")
        .like("\"/etc/opensandbox/registry-ca.pem\"")
        .must(is_absolute_or_empty, "must be an absolute path"),
    hosts<&RegistryOptions::ca_hosts>(
        "ca_hosts",
        "Registries (\"HOST\" or \"HOST:PORT\") that ca_file is for; without this line all."),
    hosts<&RegistryOptions::plain_http_hosts>(
        "plain_http_hosts", "Registries without TLS. Those on this machine need not be named."),
};

void check_authorities(ConfigReader& reader, Config& config) {
    if (config.registry.ca_file.empty() && !config.registry.ca_hosts.empty())
        reader.fail("registry.ca_hosts", "must be absent without registry.ca_file");
}

}  // namespace

constinit const Section kRegistrySection{
    .name = "registry",
    .comment =
        "Of the native runtime. Logins come with the request, from `opensandbox login`, or "
        "from ~/.docker/config.json and the credential programs that it names.",
    .keys = kRegistryKeys,
    .read = check_authorities};

}  // namespace opensandbox::server
