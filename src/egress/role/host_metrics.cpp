#include "egress/guard/metric_writers.hpp"
#include "egress/role/enforcer_parts.hpp"

namespace opensandbox::egress {

std::string Enforcer::Parts::metrics_of(const SandboxGuard& guard) const {
    telemetry::Exposition out;
    const telemetry::Labels& labels = guard.options.extra_attributes;
    write_denials(out, guard.auditor, labels);
    if (guard.options.credential_bound) {
        write_selections(out, guard.auditor, guard.vault.standing(), labels);
    }
    const auto now = rules::LearnedAddresses::Time::clock::now();
    const std::string& link = guard.filtered.place.link;
    write_learned(out, filter->table().learned().of(link, now).size(), labels);
    write_rules(out, *guard.policies.current(), labels);
    return out.text();
}

std::string Enforcer::Parts::metrics() const {
    telemetry::Exposition out;
    out.metric("egress_sandboxes", "gauge", "Sandboxes under guard.");
    out.sample(static_cast<std::uint64_t>(guards.size()));
    if (names) write_names(out, names->statistics());
    if (filter) write_filter(out, *filter);
    if (interceptor) write_interceptor(out, *interceptor);
    return out.text();
}

}  // namespace opensandbox::egress
