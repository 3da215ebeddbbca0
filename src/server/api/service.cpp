#include "server/api/routes.hpp"
#include "server/api/services.hpp"
#include "server/auth.hpp"
#include "telemetry/process_figures.hpp"
#include "version.hpp"

#include <array>

namespace opensandbox::server {
namespace {

Awaitable<void> health(http::Exchange& exchange) {
    auto response = http::json_response(200, R"({"status":"healthy"})");
    co_await exchange.respond(std::move(response));
}

Awaitable<void> version(http::Exchange& exchange) {
    auto response = http::json_response(200, "{\"version\":" + model::json_string(kVersion) + "}");
    co_await exchange.respond(std::move(response));
}

void write_sandboxes(telemetry::Exposition& out, const lifecycle::Lifecycle& lifecycle) {
    out.metric("opensandbox_sandboxes", "gauge", "Sandboxes by state.");
    auto counts = lifecycle.index().counts();
    for (std::size_t i = 0; i < counts.size(); ++i) {
        auto state = static_cast<model::SandboxState>(i);
        out.sample(counts[i], {{"state", std::string(model::to_string(state))}});
    }
}

void write_slots(telemetry::Exposition& out, const runtime::Figures& figures) {
    out.metric("opensandbox_slots_ready", "gauge", "Slots waiting for a create.");
    out.sample(figures.slots_ready);
    out.metric("opensandbox_slots_mounted", "gauge",
               "Slots among them that have the image of recent creates mounted.");
    out.sample(figures.slots_mounted);
    out.metric("opensandbox_slots_target", "gauge", "Slots that should wait; follows demand.");
    out.sample(figures.slots_target);
    out.metric("opensandbox_slot_hits_total", "counter", "Creates served from a slot that waited.");
    out.sample(figures.slot_hits);
    out.metric("opensandbox_slot_misses_total", "counter", "Creates that had to make one.");
    out.sample(figures.slot_misses);
    out.metric("opensandbox_slot_refill_seconds", "summary",
               "Time from the first missing slot until all were there again.");
    out.summary(figures.slot_refill_seconds, figures.slot_refills);
    out.metric("opensandbox_warm_slots_ready", "gauge",
               "Sandboxes waiting with their image and its programs started.");
    out.sample(figures.warm_ready);
    out.metric("opensandbox_warm_slots_target", "gauge", "As many should wait; follows demand.");
    out.sample(figures.warm_target);
    out.metric("opensandbox_warm_hits_total", "counter", "Creates served from a warm slot.");
    out.sample(figures.warm_hits);
    out.metric("opensandbox_warm_misses_total", "counter",
               "Creates that a warm slot could have served, had there been one.");
    out.sample(figures.warm_misses);
    out.metric("opensandbox_warm_failures_total", "counter",
               "Warm slots whose programs did not start.");
    out.sample(figures.warm_failures);
    out.metric("opensandbox_runtime_sandboxes", "gauge", "Sandboxes that the runtime holds.");
    out.sample(figures.sandboxes);
}

void write_process(telemetry::Exposition& out) {
    auto figures = telemetry::read_process_figures();
    out.metric("process_resident_memory_bytes", "gauge", "Resident memory of the server.");
    out.sample(figures.resident_bytes);
    out.metric("process_open_fds", "gauge", "Open file descriptors of the server.");
    out.sample(figures.open_descriptors);
    out.metric("process_cpu_seconds_total", "counter", "Processor time that the server used.");
    out.sample(figures.cpu_seconds);
    out.metric("process_start_time_seconds", "gauge", "When the server started.");
    out.sample(figures.start_time);
}

using Usages = std::vector<runtime::SandboxUsage>;

void write_series(telemetry::Exposition& out, const Usages& usages, const char* name,
                  const char* kind, const char* help,
                  std::optional<std::uint64_t> runtime::Usage::* member) {
    out.metric(name, kind, help);
    for (const auto& [id, usage] : usages) {
        if (usage.*member) out.sample(*(usage.*member), {{"sandbox", id}});
    }
}

/// One series a sandbox, so at most as many as the configuration allows.
void write_usage(telemetry::Exposition& out, const Usages& usages) {
    using runtime::Usage;
    if (usages.empty()) return;
    out.metric("opensandbox_sandbox_cpu_seconds_total", "counter", "Processor time used.");
    for (const auto& [id, usage] : usages) {
        if (usage.cpu_seconds) out.sample(*usage.cpu_seconds, {{"sandbox", id}});
    }
    write_series(out, usages, "opensandbox_sandbox_memory_bytes", "gauge",
                 "Memory in use, page cache included.", &Usage::memory_bytes);
    write_series(out, usages, "opensandbox_sandbox_memory_peak_bytes", "gauge",
                 "The most memory that was in use.", &Usage::memory_peak_bytes);
    write_series(out, usages, "opensandbox_sandbox_pids", "gauge", "Processes and threads.",
                 &Usage::pids);
    write_series(out, usages, "opensandbox_sandbox_disk_bytes", "gauge",
                 "Used in a writable layer that has a limit.", &Usage::disk_bytes);
    write_series(out, usages, "opensandbox_sandbox_network_received_bytes_total", "counter",
                 "Received over the network.", &Usage::received_bytes);
    write_series(out, usages, "opensandbox_sandbox_network_sent_bytes_total", "counter",
                 "Sent over the network.", &Usage::sent_bytes);
    out.metric("opensandbox_sandbox_oom_kills_total", "counter",
               "Processes that the kernel ended for want of memory.");
    for (const auto& [id, usage] : usages)
        out.sample(usage.oom_kills, {{"sandbox", id}});
    out.metric("opensandbox_sandbox_pids_refused_total", "counter",
               "Forks that failed at the limit of processes.");
    for (const auto& [id, usage] : usages)
        out.sample(usage.pids_refused, {{"sandbox", id}});
}

/// Who knows the id of a sandbox reaches its ports: without the key nobody learns any.
bool may_see_ids(const Services& services, const http::Exchange& exchange) {
    return !services.tenants && has_valid_key(exchange.request(), services.api_key);
}

Awaitable<void> metrics(Services& services, http::Exchange& exchange) {
    telemetry::Exposition out;
    write_sandboxes(out, services.lifecycle);
    write_slots(out, services.lifecycle.figures());
    if (may_see_ids(services, exchange)) {
        const auto limit = static_cast<std::size_t>(services.config.metrics_sandboxes);
        auto usages = co_await services.lifecycle.usage(limit);
        if (usages) write_usage(out, *usages);
    }
    services.metrics.write(out);
    write_process(out);
    http::Response response(200, "text/plain; version=0.0.4; charset=utf-8", out.text());
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_service_routes(http::Router& router, Services& services) {
    Services* s = &services;
    router.add("GET", "/health", health);
    router.add("GET", "/version", version);
    router.add("GET", "/metrics", [s](http::Exchange& x) { return metrics(*s, x); });
}

}  // namespace opensandbox::server
