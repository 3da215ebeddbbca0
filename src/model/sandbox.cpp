#include "model/sandbox.hpp"

#include <array>
#include <cctype>

namespace opensandbox::model {
namespace {

struct StateName {
    SandboxState state;
    std::string_view name;
};

constexpr std::array kStates{
    StateName{SandboxState::pending, "Pending"},
    StateName{SandboxState::running, "Running"},
    StateName{SandboxState::pausing, "Pausing"},
    StateName{SandboxState::paused, "Paused"},
    StateName{SandboxState::resuming, "Resuming"},
    StateName{SandboxState::stopping, "Stopping"},
    StateName{SandboxState::terminated, "Terminated"},
    StateName{SandboxState::failed, "Failed"},
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::tolower(static_cast<unsigned char>(a[i])) !=
            std::tolower(static_cast<unsigned char>(b[i]))) {
            return false;
        }
    }
    return true;
}

void append_status(std::string& out, const SandboxStatus& status) {
    out += ',';
    append_json_status(out, to_string(status.state), status.reason, status.message,
                       status.last_transition_at);
}

void append_platform(std::string& out, const std::optional<Platform>& platform) {
    if (!platform) return;
    out += ",\"platform\":{\"os\":";
    append_json_string(out, platform->os);
    out += ",\"arch\":";
    append_json_string(out, platform->arch);
    out += '}';
}

void append_extensions(std::string& out, const StringMap& extensions) {
    if (extensions.empty()) return;
    out += ",\"extensions\":";
    append_json_map(out, extensions);
}

void append_allocation(std::string& out, const Sandbox& sandbox) {
    if (sandbox.pool.empty()) return;
    out += ",\"allocation\":{\"mode\":\"pool\",\"poolRef\":";
    append_json_string(out, sandbox.pool);
    out += ",\"state\":\"allocated\"}";
}

void append_digest(std::string& out, const Sandbox& sandbox) {
    if (sandbox.image_digest.empty()) return;
    out += ",\"resolvedImageDigest\":";
    append_json_string(out, sandbox.image_digest);
}

void append_interception(std::string& out, const Sandbox& sandbox) {
    if (sandbox.interception_mode.empty()) return;
    out += ",\"credentialProxy\":{\"interceptionMode\":";
    append_json_string(out, sandbox.interception_mode);
    out += '}';
}

void append_times(std::string& out, const Sandbox& sandbox) {
    if (sandbox.expires_at) out += ",\"expiresAt\":\"" + to_rfc3339(*sandbox.expires_at) + "\"";
    out += ",\"createdAt\":\"" + to_rfc3339(sandbox.created_at) + "\"";
}

}  // namespace

std::string_view to_string(SandboxState state) {
    for (const StateName& entry : kStates) {
        if (entry.state == state) return entry.name;
    }
    return "Unknown";
}

std::optional<SandboxState> parse_state(std::string_view text) {
    for (const StateName& entry : kStates) {
        if (equal_ignoring_case(entry.name, text)) return entry.state;
    }
    return std::nullopt;
}

bool is_alive(SandboxState state) {
    return state != SandboxState::terminated && state != SandboxState::failed;
}

std::string to_json(const Sandbox& sandbox) {
    std::string out = "{\"id\":";
    append_json_string(out, sandbox.id);
    if (!sandbox.image_uri.empty()) {
        out += ",\"image\":{\"uri\":";
        append_json_string(out, sandbox.image_uri);
        out += '}';
    }
    append_digest(out, sandbox);
    append_interception(out, sandbox);
    if (!sandbox.snapshot_id.empty()) {
        out += ",\"snapshotId\":";
        append_json_string(out, sandbox.snapshot_id);
    }
    append_platform(out, sandbox.platform);
    append_status(out, sandbox.status);
    if (sandbox.metadata && !sandbox.metadata->empty()) {
        out += ",\"metadata\":";
        append_json_map(out, *sandbox.metadata);
    }
    append_extensions(out, sandbox.extensions);
    append_allocation(out, sandbox);
    out += ",\"entrypoint\":";
    append_json_list(out, sandbox.entrypoint);
    append_times(out, sandbox);
    out += '}';
    return out;
}

std::string to_create_json(const Sandbox& sandbox) {
    std::string out = "{\"id\":";
    append_json_string(out, sandbox.id);
    append_status(out, sandbox.status);
    if (sandbox.metadata) {
        out += ",\"metadata\":";
        append_json_map(out, *sandbox.metadata);
    }
    append_extensions(out, sandbox.extensions);
    append_platform(out, sandbox.platform);
    append_digest(out, sandbox);
    append_interception(out, sandbox);
    append_times(out, sandbox);
    out += ",\"entrypoint\":";
    append_json_list(out, sandbox.entrypoint);
    out += '}';
    return out;
}

}  // namespace opensandbox::model
