#include "egress/vault/vault.hpp"

#include "base/json_string.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace opensandbox::egress {
namespace {

Error no_vault() {
    return {ErrorCode::not_found, "credential vault not found"};
}

Error lost_vault() {
    return {ErrorCode::unavailable,
            "CREDENTIAL_REVISION_INDETERMINATE: the credential vault went with the process that "
            "held it; create it again, or delete it"};
}

/// `credential "x"`.
std::string called(std::string_view kind, std::string_view name) {
    std::string out(kind);
    out += ' ';
    append_json_string(out, name);
    return out;
}

/// The items of one kind in a change: a name is mentioned once.
template <class Item>
class ItemChange {
  public:
    ItemChange(std::string_view kind, std::vector<Item>& items) : kind_(kind), items_(items) {}

    Status apply(const std::vector<std::string>& removed, std::vector<Item> replaced,
                 std::vector<Item> added) {
        for (const std::string& name : removed) {
            if (Status known = mention(name, true); !known) return known;
            items_.erase(place(name));
        }
        for (Item& item : replaced) {
            if (Status known = mention(item.name, true); !known) return known;
            *place(item.name) = std::move(item);
        }
        for (Item& item : added) {
            if (Status fresh = mention(item.name, false); !fresh) return fresh;
            items_.push_back(std::move(item));
        }
        if (items_.size() > kMaxVaultItems) {
            return invalid("more than " + std::to_string(kMaxVaultItems) + " " +
                           std::string(kind_) + "s");
        }
        std::ranges::sort(items_, {}, &Item::name);
        return {};
    }

  private:
    auto place(const std::string& name) { return std::ranges::find(items_, name, &Item::name); }

    Status mention(const std::string& name, bool must_exist) {
        if (!mentioned_.insert(name).second) {
            return invalid(called(kind_, name) + " is mentioned more than once");
        }
        const bool exists = place(name) != items_.end();
        if (must_exist && !exists) return invalid(called(kind_, name) + " does not exist");
        if (!must_exist && exists) return invalid(called(kind_, name) + " already exists");
        return {};
    }

    std::string_view kind_;
    std::vector<Item>& items_;
    std::set<std::string> mentioned_;
};

void stamp(std::vector<Credential>& credentials, std::uint64_t revision) {
    for (Credential& credential : credentials)
        credential.revision = revision;
}

}  // namespace

std::string_view to_string(VaultStanding standing) {
    switch (standing) {
        case VaultStanding::bootstrapping: return "bootstrapping";
        case VaultStanding::active: return "active";
        case VaultStanding::active_empty: return "active-empty";
    }
    return "bootstrapping";
}

const Credential* VaultState::credential(std::string_view name) const {
    const auto found = std::ranges::find(credentials, name, &Credential::name);
    return found == credentials.end() ? nullptr : &*found;
}

const Binding* VaultState::binding(std::string_view name) const {
    const auto found = std::ranges::find(bindings, name, &Binding::name);
    return found == bindings.end() ? nullptr : &*found;
}

Result<VaultStatePtr> Vault::create(VaultCreate request, const EffectivePolicy& policy) {
    if (state_) return Error(ErrorCode::conflict, "credential vault already exists");
    VaultState next;
    next.revision = 1;
    stamp(request.credentials, next.revision);
    ItemChange credentials("credential", next.credentials);
    Status changed = credentials.apply({}, {}, std::move(request.credentials));
    if (!changed) return changed.error();
    ItemChange bindings("binding", next.bindings);
    changed = bindings.apply({}, {}, std::move(request.bindings));
    if (!changed) return changed.error();
    return publish(std::move(next), policy);
}

Result<VaultStatePtr> Vault::change(VaultMutation request, const EffectivePolicy& policy) {
    if (lost_) return lost_vault();
    if (!state_) return no_vault();
    if (settings_.credential_bound && !request.expected_revision) {
        return Error(ErrorCode::conflict,
                     "credential vault revision mismatch: expectedRevision must be given in mode "
                     "credential-bound, current " +
                         std::to_string(state_->revision));
    }
    if (request.expected_revision && *request.expected_revision != state_->revision) {
        return Error(ErrorCode::conflict, "credential vault revision mismatch: expected " +
                                              std::to_string(*request.expected_revision) +
                                              ", current " + std::to_string(state_->revision));
    }
    VaultState next = *state_;
    ++next.revision;
    stamp(request.add_credentials, next.revision);
    stamp(request.replace_credentials, next.revision);
    ItemChange credentials("credential", next.credentials);
    Status changed =
        credentials.apply(request.delete_credentials, std::move(request.replace_credentials),
                          std::move(request.add_credentials));
    if (!changed) return changed.error();
    ItemChange bindings("binding", next.bindings);
    changed = bindings.apply(request.delete_bindings, std::move(request.replace_bindings),
                             std::move(request.add_bindings));
    if (!changed) return changed.error();
    return publish(std::move(next), policy);
}

Result<VaultStatePtr> Vault::publish(VaultState next, const EffectivePolicy& policy) {
    if (Status fit = check_bindings(next.bindings, next.credentials, settings_); !fit) {
        return fit.error();
    }
    if (Status covered = check_coverage(next.bindings, policy); !covered) return covered.error();
    active_ = std::make_shared<const ActiveVault>(next.credentials, next.bindings);
    state_ = std::make_shared<const VaultState>(std::move(next));
    lost_ = false;
    return state_;
}

Status Vault::remove() {
    if (std::exchange(lost_, false)) return {};
    if (!state_) return no_vault();
    state_.reset();
    active_.reset();
    return {};
}

Result<VaultStatePtr> Vault::state() const {
    if (lost_) return lost_vault();
    if (!state_) return no_vault();
    return state_;
}

VaultStanding Vault::standing() const {
    if (lost_) return VaultStanding::bootstrapping;
    return state_ && !state_->bindings.empty() ? VaultStanding::active
                                               : VaultStanding::active_empty;
}

Status Vault::check_policy(const EffectivePolicy& policy) const {
    if (!state_) return {};
    Status covered = check_coverage(state_->bindings, policy);
    if (!covered) return covered.error().within("credential vault policy validation");
    return {};
}

}  // namespace opensandbox::egress
