#include "egress/settings/environment.hpp"

#include "egress/intercept/core/pass_through_list.hpp"
#include "egress/settings/draft.hpp"
#include "egress/settings/names.hpp"
#include "egress/settings/table.hpp"
#include "egress/settings/values.hpp"

namespace opensandbox::egress {
namespace {

/// The interceptor's own parser sees the URL, but not whether it goes with the rest.
void check_upstream_proxy(SettingDraft& draft) {
    const SidecarOptions& options = draft.parsed.options;
    if (options.upstream_proxy.empty()) {
        if (!options.upstream_proxy_authorization.empty()) {
            draft.fail_of(setting::kUpstreamProxyAuth, "needs UPSTREAM_PROXY");
        }
    } else if (!options.intercept) {
        draft.fail_of(setting::kUpstreamProxy, "needs MITMPROXY_TRANSPARENT");
    }
}

void check_credential_bound(SettingDraft& draft) {
    const SidecarOptions& options = draft.parsed.options;
    if (!options.credential_bound) return;
    const auto refuse = [&](const char* what) {
        draft.fail_of(setting::kInterceptionMode, std::string("credential-bound ") + what);
    };
    if (!options.intercept) refuse("needs MITMPROXY_TRANSPARENT");
    if (options.upstream_insecure) refuse("does not go with MITMPROXY_SSL_INSECURE");
    if (options.intercept_ports != SidecarOptions().intercept_ports) {
        refuse("does not go with MITMPROXY_EXTRA_PORTS: TLS is read at port 443 alone");
    }
    const auto listed = pass_through_list(options.pass_through);
    if (listed && listed->has_patterns()) refuse(kPatternsMixed);
}

}  // namespace

Result<ParsedEnvironment> parse_environment(const EnvironmentLookup& lookup,
                                            dns::ProxySettings dns) {
    SettingDraft draft(std::move(dns));
    for (const Setting& setting : settings()) {
        const std::string value(trim_value(lookup(setting.variable()).value_or("")));
        if (value.empty()) continue;
        draft.setting = &setting;
        setting.read(draft, value);
    }
    check_upstream_proxy(draft);
    check_credential_bound(draft);
    if (draft.error) return *draft.error;
    return std::move(draft.parsed);
}

}  // namespace opensandbox::egress
