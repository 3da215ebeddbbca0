#include "registry/location.hpp"
#include "server/config/sections.hpp"

namespace opensandbox::server {
namespace {

void read_hosts(ConfigReader& reader, std::string_view path, std::vector<std::string>& into) {
    const toml::node* found = reader.node(path);
    if (!found) return;
    const toml::array* list = found->as_array();
    if (!list) return reader.fail(path, "must be a list of hosts, each with an optional port");
    for (const toml::node& item : *list) {
        auto host = item.value_exact<std::string>();
        if (!host || host->find('/') != std::string::npos || !registry::locate_registry(*host)) {
            return reader.fail(path, "must be a list of hosts, each with an optional port");
        }
        into.push_back(std::move(*host));
    }
}

}  // namespace

void read_registry(ConfigReader& reader, Config& config) {
    std::string policy = "missing";
    reader.text("native.pull", policy);
    if (policy == "always") {
        config.registry.policy = registry::PullPolicy::always;
    } else if (policy == "never") {
        config.registry.policy = registry::PullPolicy::never;
    } else if (policy != "missing") {
        reader.fail("native.pull", "must be missing, never or always");
    }
    config.registry.ca_file = reader.path("registry.ca_file");
    if (!config.registry.ca_file.empty() && !config.registry.ca_file.is_absolute()) {
        reader.fail("registry.ca_file", "must be an absolute path");
    }
    read_hosts(reader, "registry.ca_hosts", config.registry.ca_hosts);
    read_hosts(reader, "registry.plain_http_hosts", config.registry.plain_http_hosts);
    if (config.registry.ca_file.empty() && !config.registry.ca_hosts.empty()) {
        reader.fail("registry.ca_hosts", "must be absent without registry.ca_file");
    }
}

}  // namespace opensandbox::server
