#pragma once

#include "egress/host/guards.hpp"
#include "egress/host/host_filter.hpp"

/// DNS proxy and interceptor serve all sandboxes: each question goes to the one that it is about.
/// Sandboxes that are not guarded get nothing. What these borrow outlives them.
namespace opensandbox::egress {

class HostNameGate final : public dns::Gate {
  public:
    explicit HostNameGate(const Guards& guards) : guards_(guards) {}

    dns::Verdict judge(dns::ClientId client, std::string_view name, std::uint16_t type) override;
    dns::Verdict judge_chain(dns::ClientId client, const std::vector<std::string>& names,
                             std::uint16_t type) override;
    bool allows_inner(dns::ClientId client, std::string_view name,
                      const net::Address& address) override;

  private:
    const Guards& guards_;
};

/// Addresses of this host are no targets: the interceptor would reach them past the rules that
/// refuse them to sandboxes.
class HostTargetGate final : public Gate {
  public:
    explicit HostTargetGate(const Guards& guards) : guards_(guards) {}

    TargetVerdict judge_name(ClientId client, std::string_view host, std::uint16_t port) override;
    TargetVerdict judge_address(ClientId client, const Endpoint& target) override;
    bool leads_to(ClientId client, std::string_view host, const Endpoint& address) override;
    Interest interest(ClientId client, std::string_view host, std::uint16_t port) override;

  private:
    const Guards& guards_;
};

class HostHook final : public RequestHook {
  public:
    explicit HostHook(const Guards& guards) : guards_(guards) {}

    RequestTreatment on_request(const OutgoingRequest& request) override;

  private:
    const Guards& guards_;
};

class HostAudit final : public InterceptAudit {
  public:
    explicit HostAudit(const Guards& guards) : guards_(guards) {}

    void on_connection(const ConnectionRecord& record) override;
    void on_request(const RequestRecord& record) override;

  private:
    const Guards& guards_;
};

}  // namespace opensandbox::egress
