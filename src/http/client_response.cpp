#include "http/client_connection.hpp"
#include "http/client_pool.hpp"
#include "http/incoming_body.hpp"

namespace opensandbox::http {
namespace {

/// The response as the caller sees it: its body, and the connection that goes back to the pool.
class PooledResponse final : public ClientResponse, public BodyReader {
  public:
    PooledResponse(std::shared_ptr<ClientPool> pool, std::string origin,
                   std::unique_ptr<ClientConnection> connection, ParsedResponse response,
                   Framing framing, bool keep, std::shared_ptr<BodySender> sender)
        : pool_(std::move(pool)),
          origin_(std::move(origin)),
          connection_(std::move(connection)),
          head_(std::move(response.head)),
          body_(connection_->input(), framing, UINT64_MAX,
                {ErrorCode::bad_gateway, ErrorCode::bad_gateway}),
          keep_(keep),
          sender_(std::move(sender)) {
        if (head_.status != 101) recycle();
    }
    ~PooledResponse() override {
        // The sender still borrows the stream; it ends at its next step.
        if (sender_ && sender_->running()) {
            abort();
            sender_->stop();
            keep_alive_until_sent();
        }
    }

    const ResponseHead& head() const override { return head_; }
    BodyReader& body() override { return *this; }
    std::optional<std::uint64_t> content_length() const override { return body_.content_length(); }
    Fields trailers() const override { return body_.trailers(); }

    Awaitable<Result<std::size_t>> read_some(std::span<char> into) override {
        if (body_.done()) co_return 0;
        if (aborted_) co_return Error(ErrorCode::cancelled, "the request was aborted");
        auto count = co_await body_.read_some(into);
        if (aborted_) co_return Error(ErrorCode::cancelled, "the request was aborted");
        recycle();
        co_return count;
    }

    std::optional<std::size_t> received_rest() const override {
        if (body_.done()) return 0;
        if (!connection_ || !body_.length_known()) return std::nullopt;
        if (body_.remaining() > connection_->input().buffer.size()) return std::nullopt;
        return static_cast<std::size_t>(body_.remaining());
    }

    Upgraded upgrade() override {
        auto& input = connection_->input();
        std::string buffered = input.buffer.take();
        Upgraded upgraded(std::move(input.stream), std::move(buffered));
        connection_.reset();
        return upgraded;
    }

    void abort() override {
        aborted_ = true;
        if (connection_ && connection_->input().stream) connection_->input().stream->close();
    }

    Awaitable<void> stop_sending() override {
        if (!sender_) co_return;
        sender_->stop();
        co_await sender_->wait();
        recycle();
    }

  private:
    /// Gives the connection back once nothing more will come or go over it.
    void recycle() {
        if (!body_.done() || !connection_) return;
        if (sender_ && sender_->running()) return;
        bool sent = !sender_ || sender_->complete();
        auto& input = connection_->input();
        if (keep_ && sent && input.buffer.empty() && head_.status != 101) {
            pool_->put(origin_, std::move(input.stream));
            keep_ = false;
        }
    }

    static Awaitable<void> outlive(std::shared_ptr<BodySender> sender,
                                   std::unique_ptr<ClientConnection> connection) {
        co_await sender->wait();
    }
    void keep_alive_until_sent() {
        net::spawn(pool_->executor(), outlive(sender_, std::move(connection_)),
                   "http request body end");
    }

    std::shared_ptr<ClientPool> pool_;
    std::string origin_;
    std::unique_ptr<ClientConnection> connection_;
    ResponseHead head_;
    IncomingBody body_;
    bool keep_;
    bool aborted_ = false;
    std::shared_ptr<BodySender> sender_;
};

}  // namespace

std::unique_ptr<ClientResponse> make_client_response(std::shared_ptr<ClientPool> pool,
                                                     std::string origin,
                                                     std::unique_ptr<ClientConnection> connection,
                                                     ParsedResponse response, Framing framing,
                                                     bool keep,
                                                     std::shared_ptr<BodySender> sender) {
    return std::make_unique<PooledResponse>(std::move(pool), std::move(origin),
                                            std::move(connection), std::move(response), framing,
                                            keep, std::move(sender));
}

}  // namespace opensandbox::http
