#include "egress/guard/metric_writers.hpp"
#include "egress/role/sidecar_parts.hpp"
#include "telemetry/exposition.hpp"
#include "telemetry/otlp_metrics.hpp"
#include "version.hpp"

namespace opensandbox::egress {

namespace {

using telemetry::Attributes;
using Kind = telemetry::OtlpMetrics::Kind;

Attributes with(const char* name, std::string_view value, const Attributes& common) {
    Attributes attributes{{name, std::string(value)}};
    attributes.insert(attributes.end(), common.begin(), common.end());
    return attributes;
}

std::int64_t whole(std::uint64_t number) {
    return static_cast<std::int64_t>(number);
}

void export_names(telemetry::OtlpMetrics& out, const dns::Statistics& seen,
                  const Attributes& common) {
    out.metric(Kind::histogram, "egress.dns.query.duration", "s",
               "Time of forwarded queries, failures included");
    out.point(seen.forwarded_seconds, common);
    out.metric(Kind::sum, "egress.dns.query.failed_total", "{query}",
               "Queries that no upstream resolver answered");
    out.point(whole(seen.failed), common);
}

void export_denials(telemetry::OtlpMetrics& out, const DenialLog& denials,
                    const Attributes& common) {
    out.metric(Kind::sum, "egress.policy.denied_total", "{denial}", "What policy refused");
    for (const auto kind :
         {DenialRecord::Kind::name, DenialRecord::Kind::address, DenialRecord::Kind::request}) {
        out.point(whole(denials.total(kind)), with("kind", to_string(kind), common));
    }
}

void export_selections(telemetry::OtlpMetrics& out, const Auditor::Selections& selections,
                       const Attributes& common) {
    out.metric(Kind::sum, "egress.mitm.tls.connections_total", "{connection}",
               "TLS connections by whether they were intercepted, and why");
    for (const auto& [selection, count] : selections) {
        Attributes attributes{{"mode", "credential-bound"},
                              {"decision", std::string(selection.first)},
                              {"reason", std::string(selection.second)}};
        attributes.insert(attributes.end(), common.begin(), common.end());
        out.point(whole(count), attributes);
    }
}

void export_filter(telemetry::OtlpMetrics& out, const PacketFilter& filter, std::size_t rules,
                   const Attributes& common) {
    const PacketFilter::Counts& counts = filter.counts();
    out.metric(Kind::gauge, "egress.nftables.rules.count", "{element}",
               "Rules in force and addresses that names opened");
    out.point(whole(rules + filter.table().learned().size()), common);
    out.metric(Kind::sum, "egress.nftables.updates.count", "{update}",
               "Changes of the packet filter");
    out.point(whole(counts.updates), common);
    out.metric(Kind::sum, "egress.nftables.updates.failed_total", "{update}",
               "Changes that it did not take");
    out.point(whole(counts.failed_policies), with("operation", "static", common));
    out.point(whole(counts.failed_learning), with("operation", "dynamic", common));
}

void export_host(telemetry::OtlpMetrics& out, const HostFigures& before, const HostFigures& now,
                 const Attributes& common) {
    out.metric(Kind::gauge, "egress.system.memory.usage_bytes", "By", "Memory used on the host");
    out.point(whole(now.memory_used), common);
    out.metric(Kind::gauge, "egress.system.cpu.utilization", "1",
               "Share of the host's processors that was used");
    out.point(now.cpu_share(before), common);
}

}  // namespace

std::string Sidecar::Parts::otlp_metrics(telemetry::ExportLedger& ledger) {
    const SidecarOptions& options = settings.options;
    Attributes resource{{"service.name", std::string("opensandbox-egress-") + kVersion}};
    Attributes common;
    if (!options.sandbox_id.empty()) common.emplace_back("sandbox_id", options.sandbox_id);
    resource.insert(resource.end(), common.begin(), common.end());
    for (const auto& [name, value] : options.extra_attributes)
        common.emplace_back(name, value);
    telemetry::OtlpMetrics out(resource, "opensandbox/egress", kVersion, ledger, now());
    export_names(out, names->statistics(), common);
    export_denials(out, guard->auditor.denials(), common);
    if (options.credential_bound) export_selections(out, guard->auditor.selections(), common);
    export_filter(out, *filter, guard->policies.current()->rules().size(), common);
    const HostFigures figures = read_host_figures();
    export_host(out, std::exchange(last_figures, figures), figures, common);
    return out.finish();
}

std::string Sidecar::Parts::metrics() {
    telemetry::Exposition out;
    if (names) write_names(out, names->statistics());
    write_denials(out, guard->auditor);
    if (settings.options.credential_bound) {
        write_selections(out, guard->auditor, guard->vault.standing());
    }
    if (filter) write_filter(out, *filter);
    write_rules(out, *guard->policies.current());
    if (interceptor) write_interceptor(out, *interceptor);
    return out.text();
}

}  // namespace opensandbox::egress
