#pragma once

#include "egress/intercept/core/audit.hpp"
#include "egress/intercept/core/gate.hpp"
#include "egress/intercept/core/idle_watch.hpp"
#include "egress/intercept/core/request_hook.hpp"
#include "http/fields.hpp"
#include "net/openssl_handles.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// Where the requests of one connection go.
struct Site {
    ClientId client = 0;
    Endpoint target;
    bool tls = false;
    /// What the server's certificate was checked for: the name the client began with, else the
    /// address. Empty without TLS.
    std::string host;
    SSL* upstream = nullptr;  ///< null without TLS
    bool host_is_address = false;

    [[nodiscard]] WatchedTarget watched() const {
        WatchedTarget watched(client, target, host_is_address ? std::string() : host);
        watched.decrypted = tls;
        return watched;
    }
};

/// Who decides about requests; all borrowed.
struct RequestRules {
    InterceptGate& gate;
    RequestHook* hook;      ///< null: none
    InterceptAudit* audit;  ///< null: none
    /// Whether requests over TLS may name another host than the connection began with, provided
    /// that the server's certificate holds for it. Otherwise they are refused with 421.
    bool allow_other_hosts;
};

/// A request as it came, without the fields that concern one hop only.
struct GuardedRequest {
    std::string_view method;
    std::string_view authority;  ///< Host or :authority; empty when the client sent none
    std::string& target;         ///< the hook may change it
    http::Fields& fields;        ///< the hook may change them
};

/// The one place where a request is let through, whatever it came in: its host is checked against
/// the connection and the policy, then the hook sees it. Everything that goes wrong refuses it.
class RequestGuard {
  public:
    RequestGuard(const RequestRules& rules, Site site) : rules_(rules), site_(std::move(site)) {}

    /// With a refusal, nothing may be sent on.
    RequestTreatment admit(GuardedRequest request);
    [[nodiscard]] const Site& site() const { return site_; }
    /// The host that goes on to the server, as admit() found it: "name" or "name:port".
    [[nodiscard]] const std::string& authority() const { return authority_; }
    /// The same without a port.
    [[nodiscard]] const std::string& host() const { return host_; }
    /// The same, but empty for an address.
    [[nodiscard]] const std::string& host_name() const { return host_name_; }

  private:
    struct Named;
    std::optional<RefusedRequest> find_host(std::string_view authority, Named& out) const;
    std::optional<RefusedRequest> check_connection(const Named& named) const;
    std::optional<RefusedRequest> check_interest(const Named& named) const;
    std::optional<RefusedRequest> judge(const Named& named, std::string& rule) const;
    RequestTreatment call_hook(const GuardedRequest& request, const Named& named) const;
    void record(const GuardedRequest& request, std::string_view path, std::string_view host,
                const RequestTreatment& treatment, std::string_view rule) const;

    const RequestRules& rules_;
    Site site_;
    std::string authority_;
    std::string host_;
    std::string host_name_;
};

/// Calls a hook's redaction; what it throws leaves no field behind.
void redact(const RequestTreatment& treatment, http::Fields& fields);

}  // namespace opensandbox::egress
