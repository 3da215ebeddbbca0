#include "lifecycle/lifecycle.hpp"

namespace opensandbox::lifecycle {

std::string Lifecycle::error_code(std::string_view suffix) const {
    return std::string(error_prefix()) + "::" + std::string(suffix);
}

Error Lifecycle::not_found(std::string_view id) const {
    return {ErrorCode::not_found, error_code("SANDBOX_NOT_FOUND"),
            "Sandbox " + std::string(id) + " not found."};
}

Result<std::string_view> Lifecycle::get(std::string_view id) const {
    const auto* entry = index().find(id);
    if (!entry) return not_found(id);
    return std::string_view(entry->json);
}

std::vector<SandboxEvent> Lifecycle::events(std::string_view id) const {
    const auto* entry = index().find(id);
    return entry ? entry->events.all() : std::vector<SandboxEvent>();
}

Status Lifecycle::check_renewal(const std::string& id, Timestamp expires_at) const {
    const auto* entry = index().find(id);
    if (!entry) return not_found(id);
    if (!entry->record.sandbox.expires_at) {
        return Error(ErrorCode::conflict, error_code("INVALID_EXPIRATION"),
                     "Sandbox " + id + " has no expiration: it lives until it is deleted.");
    }
    if (expires_at <= now()) {
        return Error(ErrorCode::invalid_argument, error_code("INVALID_EXPIRATION"),
                     "expiresAt: " + to_rfc3339(expires_at) + " must be in the future.");
    }
    return {};
}

Status Lifecycle::check_extension(const std::string& id) const {
    const auto* entry = index().find(id);
    if (!entry) return not_found(id);
    const model::Sandbox& sandbox = entry->record.sandbox;
    if (!sandbox.expires_at || sandbox.status.state != model::SandboxState::running) {
        return Error(ErrorCode::conflict, error_code("INVALID_EXPIRATION"),
                     "Sandbox " + id + " does not run or has no expiration.");
    }
    return {};
}

}  // namespace opensandbox::lifecycle
