#include "egress/role/interceptor_settings.hpp"

#include "base/log.hpp"
#include "egress/settings/names.hpp"

#include <filesystem>

namespace opensandbox::egress {

Result<InterceptorSettings> interceptor_settings(const UpstreamOptions& options) {
    InterceptorSettings settings;
    settings.upstream.extra_ca_file = options.extra_ca;
    std::error_code ignored;
    if (std::filesystem::is_directory(options.trust_directory, ignored)) {
        settings.upstream.trust_directory = options.trust_directory;
    } else {
        log::warn("the folder of trusted certificates is not there; the system's roots are used",
                  {{"folder", options.trust_directory}});
    }
    if (!options.proxy.empty()) {
        auto proxy = parse_upstream_proxy(options.proxy, options.proxy_authorization);
        if (!proxy) return proxy.error().within(setting::kUpstreamProxy);
        settings.dial.proxy = std::move(*proxy);
        settings.dial.proxy_tls.ca_file = options.extra_ca;
    }
    return settings;
}

}  // namespace opensandbox::egress
