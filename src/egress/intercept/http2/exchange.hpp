#pragma once

#include "egress/intercept/core/relay.hpp"
#include "egress/intercept/core/request_guard.hpp"
#include "egress/intercept/http2/session.hpp"
#include "egress/intercept/http2/stream.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>

/// The inside of relay_http2(): what happens between the two sessions, without any transport.
namespace opensandbox::egress {

class Http2Exchange {
  public:
    /// `wake` is called when either session may have something to send; `want_upstream`, once, when
    /// the first request may go out: open_upstream() or fail_upstream() is to follow.
    struct Signals {
        std::function<void()> wake;
        std::function<void(std::string host)> want_upstream;
    };
    Http2Exchange(RequestGuard& guard, const RelayLimits& limits, ClientLoad& load,
                  Signals signals);
    ~Http2Exchange();
    Http2Exchange(const Http2Exchange&) = delete;
    Http2Exchange& operator=(const Http2Exchange&) = delete;

    /// False when memory is short.
    bool open_client();
    bool open_upstream();
    /// No server: every request is answered with the reason.
    void fail_upstream(std::string reason);
    /// The server's connection is over: what has no answer gets one, the rest is cut.
    void lose_upstream();

    [[nodiscard]] Http2Session& client() { return *client_; }
    /// Null before open_upstream().
    [[nodiscard]] Http2Session* upstream() { return upstream_.get(); }
    [[nodiscard]] bool idle() const { return streams_.empty(); }
    /// Nothing is under way, and nothing new is taken.
    [[nodiscard]] bool finished() const { return closing_ && streams_.empty(); }

  private:
    class ClientEvents;
    class UpstreamEvents;
    enum class Upstream : std::uint8_t { none, opening, open, failed, lost };

    Http2Stream* by_client(std::int32_t id);
    Http2Stream* by_upstream(std::int32_t id);
    void judge(Http2Stream& stream);
    std::optional<RefusedRequest> read_request(Http2Stream& stream, http::Fields& pseudo);
    void start(Http2Stream& stream);
    void submit(Http2Stream& stream);
    void finish_collecting(Http2Stream& stream);
    void refuse(Http2Stream& stream, int status, const std::string& text);
    void request_data(Http2Stream& stream, std::string_view bytes);
    void request_end(Http2Stream& stream);
    void take_response(Http2Stream& stream, bool ended);
    void take_trailers(IncomingHeader& from, Http2Pipe& pipe, const RequestTreatment* treatment);
    void discard_request(Http2Stream& stream);
    void client_closed(Http2Stream& stream, std::uint32_t error);
    void upstream_closed(Http2Stream& stream, std::uint32_t error);
    void drop_if_over(Http2Stream& stream);
    void give_back(Http2Session& session, std::int32_t stream, std::size_t count);
    void widen(Http2Session& session, bool& wide);
    void add_field(IncomingHeader& header, std::string_view name, std::string_view value) const;

    RequestGuard& guard_;
    const RelayLimits& limits_;
    ClientLoad& load_;
    Signals signals_;
    std::unique_ptr<ClientEvents> client_events_;
    std::unique_ptr<UpstreamEvents> upstream_events_;
    std::map<std::int32_t, std::unique_ptr<Http2Stream>> streams_;  ///< by the client's number
    std::map<std::int32_t, Http2Stream*> by_upstream_;
    Upstream state_ = Upstream::none;
    std::string failure_;
    bool closing_ = false;
    bool client_wide_ = false;
    bool upstream_wide_ = false;
    std::unique_ptr<Http2Session> upstream_;
    std::unique_ptr<Http2Session> client_;
};

}  // namespace opensandbox::egress
