#include "egress/guard/target_gate.hpp"

namespace opensandbox::egress {

namespace {

TargetVerdict said(const Verdict& verdict) {
    const auto action =
        verdict.allowed ? TargetVerdict::Action::allow : TargetVerdict::Action::deny;
    return {action, to_string(verdict.reason, verdict.allowed)};
}

}  // namespace

TargetVerdict TargetGate::judge_name(ClientId, std::string_view host, std::uint16_t port) {
    TargetVerdict verdict = said(store_.current()->judge_name(host, Transport::tcp, port));
    if (verdict.action == TargetVerdict::Action::allow && passed_.has(host, port)) {
        verdict.action = TargetVerdict::Action::pass_through;
    }
    return verdict;
}

TargetVerdict TargetGate::judge_address(ClientId, const Endpoint& target) {
    return said(store_.current()->judge_address(target.address(), Transport::tcp, target.port()));
}

Interest TargetGate::interest(ClientId, std::string_view host, std::uint16_t port) {
    if (bound_ == nullptr) return Interest::any;
    if (bound_->standing() == VaultStanding::bootstrapping) return Interest::unknown;
    const auto vault = bound_->active();
    const bool bound = vault && port == kBoundPort && vault->concerns("https", port, host);
    return bound ? Interest::bound : Interest::unbound;
}

bool TargetGate::leads_to(ClientId, std::string_view host, const Endpoint& target) {
    const EffectivePolicy& policy = *store_.current();
    const PortSet granted = policy.judge_name(host).granted;
    // Rules for addresses beat what a name leads to; inner addresses need one of their own.
    if (!policy.learnable(target.address(), granted).contains(Transport::tcp, target.port())) {
        return false;
    }
    return leads_to_(host, target.address());
}

}  // namespace opensandbox::egress
