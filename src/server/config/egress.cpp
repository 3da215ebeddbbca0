#include "egress/settings/environment.hpp"
#include "egress/settings/names.hpp"
#include "egress/settings/table.hpp"
#include "server/config/egress_settings.hpp"
#include "server/config/sections.hpp"

namespace opensandbox::server {

namespace {

namespace setting = egress::setting;

/// False for a name that no setting has: it may be for a later sidecar.
bool is_reserved(std::string_view name) {
    const egress::Setting* known = egress::find_setting(name);
    return known && known->configuration == egress::InConfiguration::reserved;
}

std::optional<std::string> find(const std::vector<std::pair<std::string, std::string>>& given,
                                std::string_view name) {
    for (const auto& [key, value] : given) {
        if (key == name) return value;
    }
    return std::nullopt;
}

/// A wrong value must not be found out with the first sandbox.
Status check(const std::vector<std::pair<std::string, std::string>>& given) {
    const auto lookup = [&](std::string_view name) { return find(given, name); };
    auto parsed = egress::parse_environment(lookup);
    if (!parsed) return parsed.error();
    if (!parsed->warnings.empty()) {
        return Error(ErrorCode::invalid_argument, parsed->warnings.front());
    }
    return {};
}

}  // namespace

void read_egress_environment(ConfigReader& reader, Config& config) {
    const std::string section = "egress.environment";
    const toml::node* node = reader.node(section);
    if (!node) return;
    const toml::table* table = node->as_table();
    if (!table) return reader.fail(section, "must be a table");
    for (const auto& [key, value] : *table) {
        const std::string name(key.str());
        const auto text = value.value_exact<std::string>();
        if (!text) {
            reader.fail(section + "." + name, "must be text");
        } else if (!name.starts_with(setting::kPrefix) || is_reserved(name)) {
            reader.fail(section + "." + name,
                        "must begin with OPENSANDBOX_EGRESS_ and be none that the server sets");
        } else {
            config.egress_environment.emplace_back(name, *text);
        }
    }
    if (auto s = check(config.egress_environment); !s) reader.fail(section, s.error().message());
}

std::vector<std::pair<std::string, std::string>> native_egress_settings(const Config& config) {
    auto out = config.egress_environment;
    const runtime::docker::DockerOptions& options = config.docker;
    const auto add = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) out.emplace_back(name, value);
    };
    add(setting::kMode, "dns+nft");
    // Which sandboxes are intercepted is for their requests to say.
    if (!options.upstream_proxy_url.empty()) add(setting::kTransparent, "true");
    add(setting::kUpstreamProxy, options.upstream_proxy_url);
    add(setting::kUpstreamProxyAuth, options.upstream_proxy_authorization);
    add(setting::kExtraCa, options.upstream_proxy_ca_cert_path);
    return out;
}

}  // namespace opensandbox::server
