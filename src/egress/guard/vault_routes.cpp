#include "base/log.hpp"
#include "egress/guard/api.hpp"
#include "egress/guard/reply.hpp"
#include "egress/vault/vault_documents.hpp"
#include "egress/vault/vault_json.hpp"

namespace opensandbox::egress {

namespace {

constexpr std::string_view kVaultPath = "/credential-vault";

net::Address peer_of(const http::Exchange& exchange) {
    boost::system::error_code failed;
    const net::Address address = boost::asio::ip::make_address(exchange.peer_address(), failed);
    return failed ? net::Address() : address;
}

http::Response document(int status, const Result<std::string>& text) {
    return text ? http::json_response(status, *text) : text_error(text.error());
}

/// Takes what was read of a secret's way out of memory again.
struct WipedBody {
    explicit WipedBody(std::string t) : text(std::move(t)) {}
    WipedBody(const WipedBody&) = delete;
    WipedBody& operator=(const WipedBody&) = delete;
    ~WipedBody() { wipe(text); }
    std::string text;
};

}  // namespace

Awaitable<http::Response> Api::answer_vault(http::Exchange& exchange) {
    const http::RequestHead& request = exchange.request();
    const std::string path(request.path());
    const bool get = request.method == "GET";
    if (path != kVaultPath) {
        const std::string_view rest = std::string_view(path).substr(kVaultPath.size());
        if (rest != "/credentials" && rest != "/bindings" && !rest.starts_with("/credentials/") &&
            !rest.starts_with("/bindings/")) {
            co_return text_error(404, "not found");
        }
        co_return get ? read_vault(rest) : method_not_allowed("GET");
    }
    if (get) co_return read_vault({});
    if (request.method != "POST" && request.method != "PATCH" && request.method != "DELETE") {
        co_return method_not_allowed("GET, POST, PATCH, DELETE");
    }
    co_return co_await write_vault(exchange);
}

http::Response Api::read_vault(std::string_view path) const {
    const Result<VaultStatePtr> state = services_.vault->state();
    if (!state) return text_error(state.error());
    if (path.empty()) return http::json_response(200, to_json(**state));
    if (path == "/credentials") return http::json_response(200, credentials_json(**state));
    if (path == "/bindings") return http::json_response(200, bindings_json(**state));
    const bool credential = path.starts_with("/credentials/");
    const auto name = http::percent_decode(path.substr(path.find('/', 1) + 1)).value_or("");
    return document(200, credential ? credential_json(**state, name) : binding_json(**state, name));
}

std::optional<http::Response> Api::refuse_vault_write(http::Exchange& exchange) const {
    if (const auto missing = missing_condition(services_.conditions())) {
        return text_error(412, *missing);
    }
    if (!services_.vault_requires_tls) return std::nullopt;
    WriteTransport transport;
    transport.peer = peer_of(exchange);
    transport.forwarded_proto =
        exchange.request().fields.get("X-Forwarded-Proto").value_or(std::string_view());
    transport.forwarded_for =
        exchange.request().fields.get("X-Forwarded-For").value_or(std::string_view());
    if (is_private_transport(transport, services_.trusted_proxies)) return std::nullopt;
    return text_error(426, kNeedsTls);
}

Awaitable<Status> Api::mark_vault(bool held) const {
    if (!services_.mark_vault) co_return Status();
    co_return co_await services_.mark_vault(held);
}

void Api::tell_vault_changed() const {
    if (services_.vault_changed) services_.vault_changed();
}

Awaitable<http::Response> Api::write_vault(http::Exchange& exchange) {
    if (auto refusal = refuse_vault_write(exchange)) co_return std::move(*refusal);
    const std::string method = exchange.request().method;
    Result<std::string> read = co_await read_cut(exchange.body(), kMaxVaultBytes);
    if (!read) co_return text_error(400, "read body: " + read.error().message());
    const WipedBody body(std::move(*read));
    // In turn with changes of the policy: bindings are checked against the one that stays.
    const SerialTurns::Turn turn = co_await services_.policies->turn();
    if (method == "DELETE") {
        const Status removed = services_.vault->remove();
        if (!removed) co_return text_error(removed.error());
        tell_vault_changed();
        // What says too long that there was one denies more, and nothing else.
        if (const Status kept = co_await mark_vault(false); !kept) {
            log::warn("a vault is gone, but the next process takes it for lost",
                      {{"error", kept.error().message()}});
        }
        co_return http::Response(204);
    }
    if (method == "POST") {
        Result<VaultCreate> create = parse_vault_create(body.text);
        if (!create) co_return text_error(create.error());
        const bool first = !services_.vault->is_held();
        if (const Status kept = first ? co_await mark_vault(true) : Status(); !kept) {
            co_return text_error(kept.error());
        }
        const auto made =
            services_.vault->create(std::move(*create), *services_.policies->current());
        if (!made && first) (void)co_await mark_vault(false);
        if (!made) co_return text_error(made.error());
        tell_vault_changed();
        co_return http::json_response(201, to_json(**made));
    }
    Result<VaultMutation> mutation = parse_vault_mutation(body.text);
    if (!mutation) co_return text_error(mutation.error());
    const auto made = services_.vault->change(std::move(*mutation), *services_.policies->current());
    if (!made) co_return text_error(made.error());
    tell_vault_changed();
    co_return http::json_response(200, to_json(**made));
}

}  // namespace opensandbox::egress
