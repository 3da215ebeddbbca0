#pragma once

#include "http/incoming_body.hpp"
#include "http/server_connection.hpp"

#include <optional>

namespace opensandbox::http {

/// One request on a server connection and its answer.
class ServerExchange final : public Exchange {
  public:
    ServerExchange(std::shared_ptr<ServerConnection> connection, RequestHead head, Framing framing);

    [[nodiscard]] const RequestHead& request() const override { return request_; }
    RequestHead& request() override { return request_; }
    BodyReader& body() override { return body_; }
    [[nodiscard]] std::string peer_address() const override;

    Awaitable<void> respond(Response response) override;
    Awaitable<Status> start(ResponseHead head) override;
    Awaitable<Status> start_with(ResponseHead head, std::string_view first_bytes) override;
    Awaitable<Status> write(std::string_view bytes) override;
    Awaitable<Result<std::uint64_t>> send_file(std::shared_ptr<const UniqueFd> file,
                                               std::uint64_t offset, std::uint64_t length,
                                               FileWorker worker) override;
    Awaitable<Status> finish() override;
    Awaitable<Status> finish_with(std::string_view last_bytes) override;
    Awaitable<Status> finish_with_trailers(Fields trailers) override;
    [[nodiscard]] bool started() const override { return phase_ != Phase::fresh; }
    [[nodiscard]] int status() const override { return status_; }
    [[nodiscard]] std::uint64_t bytes_sent() const override { return bytes_sent_; }
    Awaitable<void> client_gone() override;
    void on_client_gone(std::function<void()> action) override;
    Upgraded upgrade() override;

    void set_authorized() { connection_->set_authorized(); }

    /// After the handler: answers what it left open, and makes the connection ready for the next
    /// request. False when the connection ends.
    Awaitable<bool> end();

  private:
    enum class Phase : std::uint8_t { fresh, streaming, finished, upgraded };
    /// How the end of our body is marked.
    enum class Marking : std::uint8_t { none, length, chunked, close };

    [[nodiscard]] bool may_keep_connection(const Fields& fields) const;
    std::string compose(const ResponseHead& head, std::optional<std::uint64_t> length);
    Awaitable<Status> send(std::span<const std::string_view> pieces);
    /// Sends `head` as it stands, then a piece of the body with its framing, then the end when it
    /// is the last one.
    Awaitable<Status> send_piece(std::string head, std::string_view bytes, bool last);
    Awaitable<Status> send_continue();
    Awaitable<bool> drop_rest_of_body();

    std::shared_ptr<ServerConnection> connection_;
    RequestHead request_;
    IncomingBody body_;
    Phase phase_ = Phase::fresh;
    Marking marking_ = Marking::none;
    bool wants_keep_alive_;
    bool head_only_;
    bool keep_ = false;
    bool lost_ = false;
    int status_ = 0;
    std::uint64_t bytes_sent_ = 0;
    std::uint64_t declared_ = 0;
};

}  // namespace opensandbox::http
