#pragma once

#include "egress/intercept/core/request_hook.hpp"
#include "egress/vault/vault.hpp"

namespace opensandbox::egress {

/// Puts the vault's credentials into intercepted requests, and takes them out of the answers'
/// fields. The vault outlives it.
class VaultHook final : public RequestHook {
  public:
    explicit VaultHook(const Vault& vault) : vault_(vault) {}

    /// The host is the one that the server's certificate was checked for; over plain HTTP the one
    /// whose address this is (InterceptGate::leads_to). Nothing else gets a credential.
    RequestTreatment on_request(const OutgoingRequest& request) override;

  private:
    const Vault& vault_;
};

}  // namespace opensandbox::egress
