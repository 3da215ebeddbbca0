#pragma once

#include "registry/authentication.hpp"
#include "registry/credential.hpp"
#include "registry/wire.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace opensandbox::registry {

using Answer = Result<std::unique_ptr<http::ClientResponse>>;

/// One request to a registry.
struct Call {
    std::string method;
    std::string url;  ///< path of the registry ("/v2/…"), or absolute where it named one
    http::Fields fields;
    std::string content;
    http::BodyReader* stream = nullptr;  ///< borrowed; such a call is tried once
};

/// What one operation says to one registry. Logs in when asked to, renews what expires, follows
/// redirects (without the login where they leave the host), and waits when the registry is busy.
/// Several calls may be under way at once. Lives on one event loop.
class Session {
  public:
    /// `scope` is what a token server is asked for: "repository:library/x:pull"; may be empty. Once
    /// `stop` asks for it, on the event loop, whatever waits for the registry fails with
    /// `cancelled`.
    Session(std::shared_ptr<Wire> wire, Location location, Credential credential, std::string scope,
            std::stop_token stop = {});

    /// An answer of status below 400, redirects of GET and HEAD followed. Fails with
    /// `unauthenticated`, `permission_denied`, `not_found`, `resource_exhausted` (429), else
    /// `bad_gateway`; the message has what the registry says. Transport failures as http::Client's.
    Awaitable<Answer> send(Call call);
    /// The same with its body, at most `limit` bytes; `too_large`.
    struct Document {
        http::ResponseHead head;
        std::string body;
    };
    Awaitable<Result<Document>> fetch(Call call, std::size_t limit);

    /// Waits; not longer than until it is to stop.
    Awaitable<void> rest(std::chrono::milliseconds duration);

    [[nodiscard]] const std::stop_token& stop() const { return stop_; }
    [[nodiscard]] const Location& location() const { return location_; }
    [[nodiscard]] const RegistryOptions& options() const { return wire_->options(); }
    [[nodiscard]] asio::any_io_executor executor() const { return wire_->executor(); }
    /// "/v2/<repository>/<rest>".
    [[nodiscard]] std::string path(std::string_view rest) const;
    /// How long to wait before attempt number `attempt` (from 2), with some chance in it.
    [[nodiscard]] std::chrono::milliseconds delay(int attempt) const;

  private:
    /// By way of the wire, whose answer is not waited for any longer than it is wanted.
    Awaitable<Answer> ask(http::Origin origin, http::ClientRequest request);
    Awaitable<Status> choose_scheme();
    Awaitable<Answer> attempt(std::shared_ptr<const Call> call);
    Awaitable<Answer> attempt_at(std::shared_ptr<const Call> call, Target target);
    Awaitable<Status> log_in(http::ResponseHead refusal);
    Awaitable<Status> fetch_token(Challenge challenge);
    Awaitable<Error> refusal_of(http::ClientResponse& response);
    [[nodiscard]] bool token_is_old() const;

    std::shared_ptr<Wire> wire_;
    Location location_;
    Credential credential_;
    std::string scope_;
    std::stop_token stop_;
    std::optional<Target> base_;  ///< empty until the scheme is known
    bool answered_ = false;       ///< the registry has answered once
    std::string authorization_;   ///< value of the field
    std::optional<std::chrono::steady_clock::time_point> expires_;
    std::optional<Challenge> challenge_;  ///< that the token answers
};

/// Whether a failure may pass: the connection broke, or the server is in trouble.
bool may_pass(const Error& error);

/// `cancelled`: the error of a session that is to stop.
Error unwanted_transfer();

/// Reads a body piece by piece; a piece that takes longer than the stall limit ends it.
Awaitable<Result<std::size_t>> read_piece(Session& session, http::ClientResponse& response,
                                          std::span<char> into);

/// The whole body, at most `limit` bytes; `too_large`.
Awaitable<Result<std::string>> read_document(Session& session, http::ClientResponse& response,
                                             std::size_t limit);

/// "first line, second", from the document that registries send with an error, or nothing.
std::string reason_in(std::string_view body);

}  // namespace opensandbox::registry
