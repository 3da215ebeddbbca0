#pragma once

#include "egress/dns/settings.hpp"
#include "egress/intercept/tls/certificate_authority.hpp"
#include "egress/policy/policy_files.hpp"
#include "egress/rules/sidecar_options.hpp"
#include "egress/settings/environment.hpp"
#include "net/stream.hpp"
#include "telemetry/otlp_settings.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

namespace opensandbox::egress {

/// The places where a sidecar finds and leaves things.
struct SidecarSettings {
    SidecarOptions options;
    /// But for the upstreams, which come from the options: our own settings of DNS.
    dns::ProxySettings dns;
    std::filesystem::path overlay_directory{kOverlayDirectory};
    std::filesystem::path resolv_conf = "/etc/resolv.conf";
    /// Listens already for the API, in place of options.http; borrowed. -1: none.
    int api_socket = -1;
    std::uint16_t dns_port = 15353;  ///< of 127.0.0.1 and ::1
    /// Of the packet filter, for refusals.
    std::uint16_t log_group = 100;
    /// What sandboxes are shown is signed by (network contract 1.9); made when not there.
    AuthorityFiles authority{"/var/lib/mitmproxy/.mitmproxy/mitmproxy-ca-cert.pem",
                             "/var/lib/mitmproxy/.mitmproxy/mitmproxy-ca.pem"};
    /// Where the sandbox looks for the authority's certificate.
    std::filesystem::path published_authority = "/opt/opensandbox/mitmproxy-ca-cert.pem";
    std::chrono::milliseconds overlay_interval{60'000};
    /// Where metrics go; empty: nowhere.
    std::optional<telemetry::OtlpSettings> otlp;
};

/// Egress control within the network namespace of one sandbox (network contract part 1): DNS proxy,
/// packet filter, interception, vault, audit, API. One event loop.
class Sidecar {
  public:
    Sidecar(asio::any_io_executor executor, SidecarSettings settings);
    ~Sidecar();
    Sidecar(const Sidecar&) = delete;
    Sidecar& operator=(const Sidecar&) = delete;

    /// In the contract's order (1.6); when it returns without error everything is enforced and
    /// /healthz answers. To be called on a thread in the sandbox's namespace, which the loop stays
    /// on. After an error what the packet filter holds stays: nothing is open that was not.
    Awaitable<Status> start();
    /// Ends the API, then DNS and interception. The packet filter's table stays: a sandbox without
    /// its sidecar reaches what it had learned until that expires, and no new name.
    Awaitable<void> stop(std::chrono::milliseconds grace);

    /// The API's port.
    [[nodiscard]] std::uint16_t port() const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace opensandbox::egress
