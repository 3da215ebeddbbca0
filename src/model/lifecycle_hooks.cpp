#include "model/lifecycle_hooks.hpp"

namespace opensandbox::model {
namespace {

void append_command(std::string& out, const std::vector<std::string>& command,
                    const std::optional<std::int64_t>& timeout) {
    out += "\"command\":";
    append_json_list(out, command);
    if (timeout) out += ",\"timeoutSeconds\":" + std::to_string(*timeout);
    out += '}';
}

}  // namespace

std::string to_json(const LifecycleHooks& hooks) {
    std::string out = "{";
    if (hooks.pre_start) {
        out += "\"preStart\":{";
        append_command(out, hooks.pre_start->command, hooks.pre_start->timeout_seconds);
    }
    if (!hooks.periodic.empty()) {
        out += hooks.pre_start ? ",\"periodic\":[" : "\"periodic\":[";
        for (const PeriodicHook& hook : hooks.periodic) {
            if (out.back() != '[') out += ',';
            out += "{\"name\":";
            append_json_string(out, hook.name);
            out += ",\"schedule\":";
            append_json_string(out, hook.schedule);
            out += ',';
            append_command(out, hook.command, hook.timeout_seconds);
        }
        out += ']';
    }
    return out + "}";
}

}  // namespace opensandbox::model
