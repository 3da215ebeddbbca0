#include "runtime/native/inspection_text.hpp"

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

}  // namespace

std::string format_view(const SandboxView& view) {
    json::object out;
    out["id"] = view.id;
    out["description"] = format_description(view.description);
    out["pid"] = view.pid;
    out["paused"] = view.paused;
    out["oomKilled"] = view.oom_killed;
    out["address"] = view.address;
    out["published"] = view.published;
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
    out.image = description->image.reference;
    out.running = true;
    out.paused = value_of(json::get_bool(object, "paused"));
    out.status = out.paused ? "paused" : "running";
    out.oom_killed = value_of(json::get_bool(object, "oomKilled"));
    out.created_at = description->created_at;
    out.started_at = description->created_at;
    if (description->limits.cpu_cores > 0) out.cpu_cores = description->limits.cpu_cores;
    if (description->limits.memory_bytes > 0) out.memory_bytes = description->limits.memory_bytes;
    if (description->limits.pids > 0) out.pids = description->limits.pids;
    out.network_mode = "native";
    out.addresses.emplace_back("native", value_of(json::get_string(object, "address")));
    out.ports.emplace_back("44772/tcp", value_of(json::get_string(object, "published")));
    out.environment = std::move(description->environment);
    apply_exit(object, out);
    return out;
}

}  // namespace opensandbox::runtime::native
