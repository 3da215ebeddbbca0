#include "egress/guard/name_gate.hpp"

#include "egress/filter/learning.hpp"

namespace opensandbox::egress {

dns::Verdict NameGate::verdict(const NameVerdict& judged) const {
    dns::Verdict out;
    out.allowed = judged.allowed;
    out.generation = store_.generation();
    if (!judged.allowed) {
        out.reason = to_string(judged.reason, false);
        return out;
    }
    const Rule* rule = judged.reason.rule;
    out.exact = rule != nullptr && rule->target.kind() == Target::Kind::name;
    out.scope = std::make_shared<GrantedPorts>(judged.granted);
    return out;
}

dns::Verdict NameGate::judge(dns::ClientId, std::string_view name, std::uint16_t) {
    return verdict(store_.current()->judge_name(name));
}

dns::Verdict NameGate::judge_chain(dns::ClientId, const std::vector<std::string>& names,
                                   std::uint16_t) {
    return verdict(store_.current()->judge_chain(names));
}

bool NameGate::allows_inner(dns::ClientId, std::string_view name, const net::Address& address) {
    const EffectivePolicy& policy = *store_.current();
    return !policy.learnable(address, policy.judge_name(name).granted).empty();
}

}  // namespace opensandbox::egress
