#include "egress/enforcement/metric_writers.hpp"
#include "egress/host/enforcer_parts.hpp"

namespace opensandbox::egress {

std::string Enforcer::Parts::metrics_of(const SandboxGuard& guard) const {
    telemetry::Exposition out;
    const telemetry::Labels& labels = guard.options.extra_attributes;
    write_denials(out, guard.auditor, labels);
    if (guard.options.credential_bound) {
        write_selections(out, guard.auditor, guard.vault.standing(), labels);
    }
    out.metric("egress_learned_addresses", "gauge",
               "Addresses that are open since names led there.");
    const auto now = rules::HostTable::Clock::now();
    const auto learned = filter->table().learned().of(guard.identity.link, now);
    out.sample(static_cast<std::uint64_t>(learned.size()), labels);
    out.metric("egress_policy_rules", "gauge", "Rules in force, the overlay's included.");
    out.sample(static_cast<std::uint64_t>(guard.policies.current()->rules().size()), labels);
    return out.text();
}

std::string Enforcer::Parts::metrics() const {
    telemetry::Exposition out;
    out.metric("egress_sandboxes", "gauge", "Sandboxes under guard.");
    out.sample(static_cast<std::uint64_t>(guards.size()));
    if (names) write_names(out, names->statistics());
    if (filter) {
        const HostFilter::Counts& counts = filter->counts();
        out.metric("egress_nftables_updates_total", "counter", "Changes of the packet filter.");
        out.sample(counts.updates);
        out.metric("egress_nftables_updates_failed_total", "counter",
                   "Changes that it did not take.");
        out.sample(counts.failed_policies, {{"operation", "static"}});
        out.sample(counts.failed_learning, {{"operation", "dynamic"}});
        out.metric("egress_connections_cut_total", "counter",
                   "Connections ended since they are no longer allowed.");
        out.sample(filter->connections_cut());
        out.metric("egress_learned_addresses", "gauge",
                   "Addresses that are open since names led there.");
        out.sample(static_cast<std::uint64_t>(filter->table().learned().size()));
        out.metric("egress_refused_packets_total", "counter", "Packets that the filter refused.");
        for (const rules::Reason reason : rules::all_reasons()) {
            const Result<std::uint64_t> refused = filter->table().refused(reason);
            if (refused) out.sample(*refused, {{"reason", std::string(rules::to_string(reason))}});
        }
        const Result<std::uint64_t> spoofed = filter->table().spoofed();
        if (spoofed) out.sample(*spoofed, {{"reason", "spoofed"}});
    }
    if (interceptor) {
        out.metric("egress_intercepted_connections", "gauge", "Intercepted connections now.");
        out.sample(static_cast<std::uint64_t>(interceptor->open_connections()));
    }
    return out.text();
}

}  // namespace opensandbox::egress
