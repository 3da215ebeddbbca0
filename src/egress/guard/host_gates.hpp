#pragma once

#include "egress/guard/guards.hpp"

/// The interceptor serves all sandboxes: each question goes to the one that it is about. Sandboxes
/// that are not guarded get nothing. What these borrow outlives them.
namespace opensandbox::egress {

/// Addresses of this host are no targets: the interceptor would reach them past the rules that
/// refuse them to sandboxes.
class HostTargetGate final : public InterceptGate {
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
