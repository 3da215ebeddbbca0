#include "runtime/native/records/inspection_text.hpp"

#include <array>

namespace opensandbox::runtime::native {

namespace {

std::int64_t ticks(Timestamp at) {
    return at.time_since_epoch().count();
}

Timestamp from_ticks(std::int64_t count) {
    return Timestamp(std::chrono::microseconds(count));
}

template <class T>
T value_of(Result<std::optional<T>> found) {
    return found ? std::move(*found).value_or(T()) : T();
}

void apply_exit(const json::object& object, Inspection& out) {
    auto at = json::get_integer(object, "exitAt");
    if (!at || !*at) return;
    out.running = false;
    out.status = "exited";
    out.finished_at = from_ticks(**at);
    out.exit_code = static_cast<int>(value_of(json::get_integer(object, "exitCode")));
    out.error = value_of(json::get_string(object, "exitMessage"));
    const std::string reason = value_of(json::get_string(object, "exitReason"));
    out.oom_killed = out.oom_killed || reason == "OOM_KILLED";
    if (out.error.empty()) out.error = reason;
}

/// Numbers, in the order of the names.
constexpr std::array<const char*, 6> kCounterNames{"memoryBytes", "memoryPeakBytes", "pids",
                                                   "diskBytes",   "receivedBytes",   "sentBytes"};

template <class U>
auto counters(U& usage) {
    return std::array{&usage.memory_bytes, &usage.memory_peak_bytes, &usage.pids,
                      &usage.disk_bytes,   &usage.received_bytes,    &usage.sent_bytes};
}

json::object usage_json(const Usage& usage) {
    json::object out;
    if (usage.cpu_seconds) out["cpuSeconds"] = *usage.cpu_seconds;
    const auto values = counters(usage);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (*values[i]) out[kCounterNames[i]] = **values[i];
    }
    out["oomKills"] = usage.oom_kills;
    out["pidsRefused"] = usage.pids_refused;
    return out;
}

std::optional<std::uint64_t> counter_of(const json::object& object, const char* name) {
    auto found = json::get_integer(object, name);
    if (!found || !*found || **found < 0) return std::nullopt;
    return static_cast<std::uint64_t>(**found);
}

Usage parse_usage(const json::object& object) {
    Usage usage;
    if (auto seconds = json::get_number(object, "cpuSeconds")) usage.cpu_seconds = *seconds;
    const auto values = counters(usage);
    for (std::size_t i = 0; i < values.size(); ++i)
        *values[i] = counter_of(object, kCounterNames[i]);
    usage.oom_kills = counter_of(object, "oomKills").value_or(0);
    usage.pids_refused = counter_of(object, "pidsRefused").value_or(0);
    return usage;
}

void apply_network(const json::object& object, const SandboxDescription& description,
                   Inspection& out) {
    const std::string published = value_of(json::get_string(object, "published"));
    out.ports.emplace_back("44772/tcp", published);
    const std::string host = published.substr(0, published.rfind(':'));
    for (const auto& [inside, outside] : description.published) {
        out.ports.emplace_back(std::to_string(inside) + "/tcp",
                               host + ":" + std::to_string(outside));
    }
    const std::string address = value_of(json::get_string(object, "address"));
    const bool none = description.plan.network.none || address.empty();
    out.network_mode = none ? "none" : "native";
    if (none) return;
    const std::string address6 = value_of(json::get_string(object, "address6"));
    const auto add = [&](const std::string& network) {
        out.addresses.emplace_back(network, address);
        if (!address6.empty()) out.addresses.emplace_back(network, address6);
    };
    add("native");
    // Behind the tenant's name.
    if (!description.plan.network.shared.empty())
        add(description.plan.network.shared.substr(description.plan.network.shared.rfind('/') + 1));
}

}  // namespace

std::string format_view(const SandboxView& view) {
    json::object out;
    std::string off;
    out["id"] = view.id;
    out["description"] = format_description(view.description);
    out["pid"] = view.pid;
    out["paused"] = view.paused;
    out["usage"] = usage_json(view.usage);
    out["layer"] = view.layer;
    out["address"] = view.address;
    out["address6"] = view.address6;
    out["published"] = view.published;
    for (const std::string& phrase : view.off)
        off += (off.empty() ? "" : "; ") + phrase;
    out["off"] = off;
    if (view.exit) {
        // A signal shows as shells show it.
        out["exitCode"] = view.exit->signal != 0 ? 128 + view.exit->signal : view.exit->code;
        out["exitReason"] = view.exit->reason;
        out["exitMessage"] = view.exit->message;
        out["exitAt"] = ticks(view.exit->at);
    }
    return json::serialize(out);
}

Result<Inspection> parse_view(std::string_view text) {
    auto document = json::parse(text);
    if (!document || !document->is_object()) {
        return Error(ErrorCode::protocol, "the spawner's view of a sandbox is malformed");
    }
    const json::object& object = document->get_object();
    auto description = parse_description(value_of(json::get_string(object, "description")));
    if (!description) return Error(ErrorCode::protocol, description.error().message());
    Inspection out;
    out.object_id = value_of(json::get_string(object, "id"));
    out.name = "pid " + std::to_string(value_of(json::get_integer(object, "pid")));
    out.image = description->plan.image.reference;
    out.running = true;
    out.paused = value_of(json::get_bool(object, "paused"));
    out.status = out.paused ? "paused" : "running";
    if (const auto* usage = json::find(object, "usage"); usage && usage->is_object()) {
        out.usage = parse_usage(usage->get_object());
    }
    out.oom_killed = out.usage.oom_kills > 0;
    out.created_at = description->created_at;
    out.started_at = description->created_at;
    out.limits = description->plan.limits;
    apply_network(object, *description, out);
    const std::string off = value_of(json::get_string(object, "off"));
    if (!off.empty()) out.labels.emplace_back("off-on-this-host", off);
    out.environment = std::move(description->plan.environment);
    apply_exit(object, out);
    return out;
}

std::string layer_of_view(std::string_view text) {
    auto document = json::parse(text);
    if (!document || !document->is_object()) return {};
    return value_of(json::get_string(document->get_object(), "layer"));
}

}  // namespace opensandbox::runtime::native
