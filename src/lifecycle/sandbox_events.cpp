#include "lifecycle/sandbox_events.hpp"

namespace opensandbox::lifecycle {
namespace {

bool same_status(const model::SandboxStatus& a, const model::SandboxStatus& b) {
    return a.state == b.state && a.reason == b.reason && a.message == b.message;
}

}  // namespace

void SandboxEvents::add(SandboxEvent event) {
    if (events_.size() == kKept) events_.erase(events_.begin());
    events_.push_back(std::move(event));
}

void SandboxEvents::add_changes(const model::Sandbox* before, const model::Sandbox& after,
                                Timestamp at) {
    const model::SandboxStatus& status = after.status;
    if (!before || !same_status(before->status, status)) {
        bool stamped = status.last_transition_at != Timestamp();
        std::string reason =
            status.reason.empty() ? std::string(to_string(status.state)) : status.reason;
        add({stamped ? status.last_transition_at : at, std::move(reason), status.message});
    }
    if (!before) return;
    if (before->expires_at != after.expires_at) {
        add({at, "EXPIRATION_CHANGED",
             after.expires_at ? "Sandbox expires at " + to_rfc3339(*after.expires_at) + "."
                              : "Sandbox does not expire."});
    }
    if (before->metadata != after.metadata) {
        add({at, "METADATA_CHANGED", "Metadata was changed."});
    }
}

}  // namespace opensandbox::lifecycle
