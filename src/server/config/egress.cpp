#include "egress/dns/filter_environment.hpp"
#include "egress/settings/environment.hpp"
#include "server/config/egress_settings.hpp"
#include "server/config/sections.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::server {

namespace {

constexpr std::string_view kPrefix = "OPENSANDBOX_EGRESS_";
/// What the server says of each sandbox, and what other keys of [egress] are for.
constexpr std::array<std::string_view, 10> kReserved{"RULES",
                                                     "POLICY_FILE",
                                                     "TOKEN",
                                                     "SANDBOX_ID",
                                                     "MODE",
                                                     "HTTP_ADDR",
                                                     "UPSTREAM_PROXY",
                                                     "UPSTREAM_PROXY_AUTH",
                                                     "MITMPROXY_TRANSPARENT",
                                                     "MITMPROXY_INTERCEPTION_MODE"};

bool is_reserved(std::string_view name) {
    return std::ranges::find(kReserved, name.substr(kPrefix.size())) != kReserved.end();
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
    egress::dns::ProxySettings settings;
    return egress::dns::read_filter_environment(lookup, settings);
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
        } else if (!name.starts_with(kPrefix) || is_reserved(name)) {
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
    const auto add = [&](std::string_view suffix, const std::string& value) {
        if (!value.empty()) out.emplace_back(std::string(kPrefix) + std::string(suffix), value);
    };
    add("MODE", "dns+nft");
    // Which sandboxes are intercepted is for their requests to say.
    if (!options.upstream_proxy_url.empty()) add("MITMPROXY_TRANSPARENT", "true");
    add("UPSTREAM_PROXY", options.upstream_proxy_url);
    add("UPSTREAM_PROXY_AUTH", options.upstream_proxy_authorization);
    add("MITMPROXY_UPSTREAM_EXTRA_CA", options.upstream_proxy_ca_cert_path);
    return out;
}

}  // namespace opensandbox::server
