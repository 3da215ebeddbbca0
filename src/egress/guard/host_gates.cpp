#include "egress/guard/host_gates.hpp"

#include "egress/guard/own_address.hpp"

namespace opensandbox::egress {

namespace {

constexpr const char* kOwnAddress = "an address of the host";

}  // namespace

TargetVerdict HostTargetGate::judge_name(ClientId client, std::string_view host,
                                         std::uint16_t port) {
    const GuardPtr guard = guards_.of_client(client);
    if (!guard) return {TargetVerdict::Action::deny, kUnguarded};
    return guard->targets->judge_name(client, host, port);
}

TargetVerdict HostTargetGate::judge_address(ClientId client, const Endpoint& target) {
    const GuardPtr guard = guards_.of_client(client);
    if (!guard) return {TargetVerdict::Action::deny, kUnguarded};
    if (is_own_address(target.address())) return {TargetVerdict::Action::deny, kOwnAddress};
    return guard->targets->judge_address(client, target);
}

bool HostTargetGate::leads_to(ClientId client, std::string_view host, const Endpoint& target) {
    const GuardPtr guard = guards_.of_client(client);
    return guard && guard->targets->leads_to(client, host, target) &&
           !is_own_address(target.address());
}

Interest HostTargetGate::interest(ClientId client, std::string_view host, std::uint16_t port) {
    const GuardPtr guard = guards_.of_client(client);
    return guard ? guard->targets->interest(client, host, port) : Interest::unknown;
}

RequestTreatment HostHook::on_request(const OutgoingRequest& request) {
    if (const GuardPtr guard = guards_.of_client(request.client))
        return guard->hook.on_request(request);
    RequestTreatment treatment;
    treatment.refusal.emplace(403, kUnguarded);
    return treatment;
}

void HostAudit::on_connection(const ConnectionRecord& record) {
    if (const GuardPtr guard = guards_.of_client(record.client))
        guard->auditor.on_connection(record);
}

void HostAudit::on_request(const RequestRecord& record) {
    if (const GuardPtr guard = guards_.of_client(record.client)) guard->auditor.on_request(record);
}

}  // namespace opensandbox::egress
