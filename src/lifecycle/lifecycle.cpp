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

}  // namespace opensandbox::lifecycle
