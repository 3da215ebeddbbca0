#include "opensandbox/credential_vault.hpp"

#include "sdk/egress_exchange.hpp"
#include "sdk/wire_egress.hpp"

namespace opensandbox::sdk {

namespace {

std::string target_of(std::string_view rest = "", std::string_view name = "") {
    return "/credential-vault" + std::string(rest) + http::percent_encode(name);
}

/// A name is part of a path: an empty one would name the list.
std::optional<Error> refuse_empty(std::string_view what, std::string_view name) {
    if (!name.empty()) return std::nullopt;
    return Error(ErrorCode::invalid_argument, "the " + std::string(what) + "'s name is empty");
}

}  // namespace

Awaitable<Result<VaultState>> CredentialVault::create(std::string document) const {
    auto body = wire::check_vault_document(document);
    if (!body) co_return body.error();
    Call call("POST", target_of(), std::move(*body));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_vault(reply->body);
}

Awaitable<Result<VaultState>> CredentialVault::get() const {
    Call call("GET", target_of());
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_vault(reply->body);
}

Awaitable<Result<VaultState>> CredentialVault::patch(std::string document) const {
    auto body = wire::check_vault_document(document);
    if (!body) co_return body.error();
    Call call("PATCH", target_of(), std::move(*body));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_vault(reply->body);
}

Awaitable<Status> CredentialVault::remove() const {
    Call call("DELETE", target_of());
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

Awaitable<Result<std::vector<CredentialInfo>>> CredentialVault::credentials() const {
    Call call("GET", target_of("/credentials"));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_credentials(reply->body);
}

Awaitable<Result<CredentialInfo>> CredentialVault::credential(std::string name) const {
    if (auto refused = refuse_empty("credential", name)) co_return *refused;
    Call call("GET", target_of("/credentials/", name));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_credential(reply->body);
}

Awaitable<Result<std::vector<BindingInfo>>> CredentialVault::bindings() const {
    Call call("GET", target_of("/bindings"));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_bindings(reply->body);
}

Awaitable<Result<BindingInfo>> CredentialVault::binding(std::string name) const {
    if (auto refused = refuse_empty("binding", name)) co_return *refused;
    Call call("GET", target_of("/bindings/", name));
    auto reply = co_await exchange_egress(connection_, id_, std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_binding(reply->body);
}

}  // namespace opensandbox::sdk
