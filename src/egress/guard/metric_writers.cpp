#include "egress/guard/metric_writers.hpp"

namespace opensandbox::egress {

void write_names(telemetry::Exposition& out, const dns::Statistics& seen) {
    out.metric("egress_dns_queries_total", "counter", "Queries for names by what became of them.");
    out.sample(seen.cache_hits, {{"outcome", "cached"}});
    out.sample(seen.forwarded, {{"outcome", "forwarded"}});
    out.sample(seen.denied, {{"outcome", "denied"}});
    out.sample(seen.failed, {{"outcome", "failed"}});
    out.sample(seen.learn_failures, {{"outcome", "not_opened"}});
    out.sample(seen.malformed, {{"outcome", "malformed"}});
    out.sample(seen.overload_dropped, {{"outcome", "dropped"}});
    out.metric("egress_dns_rebinding_removed_total", "counter",
               "Addresses of inner networks taken out of answers.");
    out.sample(seen.rebinding_removed);
    out.metric("egress_dns_query_duration_seconds", "histogram",
               "Time of forwarded queries, failures included.");
    out.histogram(seen.forwarded_seconds);
}

void write_denials(telemetry::Exposition& out, const Auditor& auditor,
                   const telemetry::Labels& labels) {
    const auto sample = [&](std::uint64_t value, const char* name, std::string_view text) {
        telemetry::Labels all{{name, std::string(text)}};
        all.insert(all.end(), labels.begin(), labels.end());
        out.sample(value, all);
    };
    out.metric("egress_policy_denied_total", "counter", "What policy refused.");
    for (const auto kind :
         {DenialRecord::Kind::name, DenialRecord::Kind::address, DenialRecord::Kind::request}) {
        sample(auditor.denials().total(kind), "kind", to_string(kind));
    }
    const DenialWebhook* webhook = auditor.webhook();
    if (webhook == nullptr) return;
    out.metric("egress_deny_webhook_total", "counter", "Denials by what the webhook made of them.");
    sample(webhook->counts().delivered, "outcome", "delivered");
    sample(webhook->counts().failed, "outcome", "failed");
    sample(webhook->counts().dropped, "outcome", "dropped");
    sample(webhook->counts().repeated, "outcome", "repeated");
}

void write_selections(telemetry::Exposition& out, const Auditor& auditor, VaultStanding standing,
                      const telemetry::Labels& labels) {
    out.metric("egress_mitm_tls_connections_total", "counter",
               "TLS connections by whether they were intercepted, and why.");
    for (const auto& [selection, count] : auditor.selections()) {
        telemetry::Labels all{{"mode", "credential-bound"},
                              {"decision", std::string(selection.first)},
                              {"reason", std::string(selection.second)}};
        all.insert(all.end(), labels.begin(), labels.end());
        out.sample(count, all);
    }
    out.metric("egress_credential_vault_state", "gauge",
               "1 for what is known of the vault, 0 for the other states.");
    for (const auto state :
         {VaultStanding::bootstrapping, VaultStanding::active, VaultStanding::active_empty}) {
        telemetry::Labels all{{"state", std::string(to_string(state))}};
        all.insert(all.end(), labels.begin(), labels.end());
        out.sample(std::uint64_t{state == standing ? 1U : 0U}, all);
    }
}

void write_filter(telemetry::Exposition& out, const PacketFilter& filter) {
    const PacketFilter::Counts& counts = filter.counts();
    out.metric("egress_nftables_updates_total", "counter", "Changes of the packet filter.");
    out.sample(counts.updates);
    out.metric("egress_nftables_updates_failed_total", "counter", "Changes that it did not take.");
    out.sample(counts.failed_policies, {{"operation", "static"}});
    out.sample(counts.failed_learning, {{"operation", "dynamic"}});
    out.metric("egress_connections_cut_total", "counter",
               "Connections ended since they are no longer allowed.");
    out.sample(filter.connections_cut());
    write_learned(out, filter.table().learned().size());
    out.metric("egress_refused_packets_total", "counter", "Packets that the filter refused.");
    for (const auto& [reason, packets] : filter.table().refusals())
        out.sample(packets, {{"reason", std::string(reason)}});
}

void write_learned(telemetry::Exposition& out, std::size_t addresses,
                   const telemetry::Labels& labels) {
    out.metric("egress_learned_addresses", "gauge",
               "Addresses that are open since names led there.");
    out.sample(static_cast<std::uint64_t>(addresses), labels);
}

void write_rules(telemetry::Exposition& out, const EffectivePolicy& policy,
                 const telemetry::Labels& labels) {
    out.metric("egress_policy_rules", "gauge", "Rules in force, the overlay's included.");
    out.sample(static_cast<std::uint64_t>(policy.rules().size()), labels);
}

void write_interceptor(telemetry::Exposition& out, const Interceptor& interceptor) {
    out.metric("egress_intercepted_connections", "gauge", "Intercepted connections now.");
    out.sample(static_cast<std::uint64_t>(interceptor.open_connections()));
}

}  // namespace opensandbox::egress
