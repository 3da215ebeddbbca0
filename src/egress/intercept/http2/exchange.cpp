#include "egress/intercept/http2/exchange.hpp"

#include "egress/intercept/core/message_fields.hpp"

#include <charconv>

namespace opensandbox::egress {
/// What the client's session tells.
class Http2Exchange::ClientEvents final : public Http2Events {
  public:
    explicit ClientEvents(Http2Exchange& all) : all_(all) {}

    void on_header_begin(std::int32_t id) override {
        if (all_.streams_.count(id) != 0) return;
        all_.streams_.emplace(id, std::make_unique<Http2Stream>(id, all_.load_));
    }
    void on_field(std::int32_t id, std::string_view name, std::string_view value) override {
        if (Http2Stream* stream = all_.by_client(id)) {
            all_.add_field(stream->request, name, value);
        }
    }
    void on_header_end(std::int32_t id, bool ended) override {
        Http2Stream* stream = all_.by_client(id);
        if (stream == nullptr) return;
        if (!stream->judged) {
            stream->to_upstream.ended = ended;
            all_.judge(*stream);
        } else {
            all_.take_trailers(stream->request, stream->to_upstream, nullptr);
        }
    }
    void on_data(std::int32_t id, std::string_view bytes) override {
        all_.widen(*all_.client_, all_.client_wide_);
        if (Http2Stream* stream = all_.by_client(id)) all_.request_data(*stream, bytes);
    }
    void on_end(std::int32_t id) override {
        if (Http2Stream* stream = all_.by_client(id)) all_.request_end(*stream);
    }
    Supply supply(std::int32_t id, char* into, std::size_t room) override {
        Supply made;
        Http2Stream* stream = all_.by_client(id);
        if (stream == nullptr) {
            made.ended = true;
            return made;
        }
        Http2Pipe& pipe = stream->to_client;
        made.count = pipe.take(into, room);
        made.ended = pipe.ended && pipe.held() == 0;
        if (made.ended && pipe.trailers.size() > 0) made.trailers = &pipe.trailers;
        bool counts = made.count > 0 && !stream->response_is_ours && all_.upstream_;
        if (counts) all_.give_back(*all_.upstream_, stream->upstream_id, made.count);
        return made;
    }
    void on_end_sent(std::int32_t id) override {
        Http2Stream* stream = all_.by_client(id);
        if (stream == nullptr) return;
        stream->end_sent = true;
        // The answer is out whole; what the client still sends, nobody reads.
        bool unread =
            !stream->to_upstream.ended && (stream->upstream_id < 0 || stream->upstream_closed);
        if (unread) all_.client_->reset(id, NGHTTP2_NO_ERROR);
    }
    void on_stream_close(std::int32_t id, std::uint32_t error) override {
        if (Http2Stream* stream = all_.by_client(id)) all_.client_closed(*stream, error);
    }
    void on_goaway() override {}

  private:
    Http2Exchange& all_;
};

/// What the server's session tells.
class Http2Exchange::UpstreamEvents final : public Http2Events {
  public:
    explicit UpstreamEvents(Http2Exchange& all) : all_(all) {}

    void on_header_begin(std::int32_t) override {}
    void on_field(std::int32_t id, std::string_view name, std::string_view value) override {
        if (Http2Stream* stream = all_.by_upstream(id)) {
            all_.add_field(stream->response, name, value);
        }
    }
    void on_header_end(std::int32_t id, bool ended) override {
        Http2Stream* stream = all_.by_upstream(id);
        if (stream == nullptr) return;
        if (!stream->answered) {
            all_.take_response(*stream, ended);
        } else {
            all_.take_trailers(stream->response, stream->to_client, &stream->treatment);
        }
    }
    void on_data(std::int32_t id, std::string_view bytes) override {
        all_.widen(*all_.upstream_, all_.upstream_wide_);
        Http2Stream* stream = all_.by_upstream(id);
        if (stream == nullptr || stream->client_closed || stream->response_is_ours) {
            all_.upstream_->consume(id, bytes.size());
            return;
        }
        stream->to_client.put(bytes);
        all_.client_->resume(stream->client_id);
        all_.signals_.wake();
    }
    void on_end(std::int32_t id) override {
        Http2Stream* stream = all_.by_upstream(id);
        if (stream == nullptr || stream->response_is_ours) return;
        stream->to_client.ended = true;
        if (!stream->client_closed) all_.client_->resume(stream->client_id);
        all_.signals_.wake();
    }
    Supply supply(std::int32_t id, char* into, std::size_t room) override {
        Supply made;
        Http2Stream* stream = all_.by_upstream(id);
        if (stream == nullptr) {
            made.ended = true;
            return made;
        }
        Http2Pipe& pipe = stream->to_upstream;
        made.count = pipe.take(into, room);
        made.ended = pipe.ended && pipe.held() == 0;
        if (made.ended && pipe.trailers.size() > 0) made.trailers = &pipe.trailers;
        bool counts = made.count > 0 && !stream->request_is_ours;
        if (counts) all_.give_back(*all_.client_, stream->client_id, made.count);
        return made;
    }
    void on_end_sent(std::int32_t) override {}
    void on_stream_close(std::int32_t id, std::uint32_t error) override {
        if (Http2Stream* stream = all_.by_upstream(id)) all_.upstream_closed(*stream, error);
    }
    void on_goaway() override {
        // Its reasons are ours: streams under way end, new ones need a new connection.
        all_.closing_ = true;
        all_.client_->go_away();
        all_.signals_.wake();
    }

  private:
    Http2Exchange& all_;
};

Http2Exchange::Http2Exchange(RequestGuard& guard, const RelayLimits& limits, ClientLoad& load,
                             Signals signals)
    : guard_(guard),
      limits_(limits),
      load_(load),
      signals_(std::move(signals)),
      client_events_(std::make_unique<ClientEvents>(*this)),
      upstream_events_(std::make_unique<UpstreamEvents>(*this)) {}

Http2Exchange::~Http2Exchange() {
    constexpr auto kWide = static_cast<std::size_t>(Http2Session::kWideWindow);
    if (client_wide_) load_.reserved -= kWide;
    if (upstream_wide_) load_.reserved -= kWide;
}

bool Http2Exchange::open_client() {
    client_ = Http2Session::make(Http2Session::Role::server, limits_, *client_events_);
    return client_ != nullptr;
}

bool Http2Exchange::open_upstream() {
    upstream_ = Http2Session::make(Http2Session::Role::client, limits_, *upstream_events_);
    if (!upstream_) return false;
    state_ = Upstream::open;
    for (auto& [id, stream] : streams_) {
        if (stream->outgoing && !stream->collecting) submit(*stream);
    }
    signals_.wake();
    return true;
}

void Http2Exchange::fail_upstream(std::string reason) {
    state_ = Upstream::failed;
    failure_ = std::move(reason);
    for (auto& [id, stream] : streams_) {
        if (stream->outgoing && !stream->collecting) refuse(*stream, 502, "egress: " + failure_);
    }
}

void Http2Exchange::lose_upstream() {
    state_ = Upstream::lost;
    closing_ = true;
    failure_ = "the server ended the connection without an answer";
    client_->go_away();
    std::vector<Http2Stream*> open;
    for (auto& [id, stream] : streams_) {
        if (stream->judged && !stream->upstream_closed) open.push_back(stream.get());
    }
    for (Http2Stream* stream : open) {
        if (!stream->answered && !stream->client_closed) {
            refuse(*stream, 502, "egress: " + failure_);
        }
        upstream_closed(*stream, NGHTTP2_INTERNAL_ERROR);
    }
    signals_.wake();
}

/// What one side took, the other may send anew; it may be waiting to hear just that.
void Http2Exchange::give_back(Http2Session& session, std::int32_t stream, std::size_t count) {
    session.consume(stream, count);
    signals_.wake();
}

/// Once bodies come, their sender gets a large window while the client's share lasts.
void Http2Exchange::widen(Http2Session& session, bool& wide) {
    constexpr auto kWide = static_cast<std::size_t>(Http2Session::kWideWindow);
    if (wide || load_.reserved + kWide > limits_.max_client_bytes) return;
    wide = true;
    load_.reserved += kWide;
    session.widen();
}

Http2Stream* Http2Exchange::by_client(std::int32_t id) {
    auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second.get();
}

Http2Stream* Http2Exchange::by_upstream(std::int32_t id) {
    auto found = by_upstream_.find(id);
    return found == by_upstream_.end() ? nullptr : found->second;
}

void Http2Exchange::add_field(IncomingHeader& header, std::string_view name,
                              std::string_view value) const {
    // As SETTINGS_MAX_HEADER_LIST_SIZE counts; nghttp2 only announces that.
    header.bytes += name.size() + value.size() + 32;
    if (header.bytes > limits_.max_header) {
        header.too_large = true;
        header.fields = http::Fields();
        return;
    }
    header.fields.add(std::string(name), std::string(value));
}

void Http2Exchange::take_trailers(IncomingHeader& from, Http2Pipe& pipe,
                                  const RequestTreatment* treatment) {
    http::Fields trailers = from.too_large ? http::Fields() : std::move(from.fields);
    from.fields = http::Fields();
    strip_hop_fields(trailers);
    for (std::string_view name : {"content-length", "host", "authorization"})
        trailers.erase(name);
    if (treatment != nullptr) redact(*treatment, trailers);
    pipe.trailers = std::move(trailers);
}

/// Hands a final or interim answer to the client.
void Http2Exchange::take_response(Http2Stream& stream, bool ended) {
    IncomingHeader header = std::move(stream.response);
    stream.response = IncomingHeader();
    if (stream.response_is_ours || stream.client_closed) return;
    std::string status(header.fields.get(":status").value_or(""));
    int number = 0;
    std::from_chars(status.data(), status.data() + status.size(), number);
    if (header.too_large || number < 100) {
        upstream_->reset(stream.upstream_id, NGHTTP2_CANCEL);
        refuse(stream, 502, "egress: the server's answer has too large a header");
        return;
    }
    header.fields.erase(":status");
    strip_hop_fields(header.fields);
    redact(stream.treatment, header.fields);
    Http2Header out;
    out.add(":status", status);
    out.add(header.fields);
    signals_.wake();
    if (number < 200) {
        client_->interim(stream.client_id, out);
        return;
    }
    stream.answered = true;
    stream.to_client.ended = ended;
    client_->respond(stream.client_id, out, !ended);
}

void Http2Exchange::refuse(Http2Stream& stream, int status, const std::string& text) {
    http::Response page = refusal_page(status, text);
    Http2Header out;
    out.add(":status", std::to_string(status));
    out.add(page.head.fields);
    out.add("content-length", std::to_string(page.body.size()));
    stream.outgoing.reset();
    stream.answered = true;
    stream.response_is_ours = true;
    bool body = stream.method != "HEAD";
    if (body) stream.to_client.put(page.body);
    stream.to_client.ended = true;
    discard_request(stream);
    if (!stream.client_closed) client_->respond(stream.client_id, out, body);
    signals_.wake();
}

/// What came of the request's body, and what comes, is let go; the window is given back.
void Http2Exchange::discard_request(Http2Stream& stream) {
    stream.discarding = true;
    stream.collecting = false;
    std::size_t held = stream.to_upstream.held();
    stream.to_upstream.drop(held);
    if (held > 0 && !stream.request_is_ours) client_->consume(stream.client_id, held);
}

void Http2Exchange::client_closed(Http2Stream& stream, std::uint32_t error) {
    stream.client_closed = true;
    std::size_t held = stream.to_client.held();
    stream.to_client.drop(held);
    bool ours = stream.response_is_ours || stream.upstream_id < 0;
    if (held > 0 && !ours && upstream_) upstream_->consume(stream.upstream_id, held);
    bool reset = error != NGHTTP2_NO_ERROR || !stream.to_upstream.ended;
    if (stream.upstream_id >= 0 && !stream.upstream_closed && upstream_ && reset) {
        upstream_->reset(stream.upstream_id,
                         error != NGHTTP2_NO_ERROR ? error : std::uint32_t(NGHTTP2_CANCEL));
    }
    if (stream.upstream_id < 0) {
        stream.upstream_closed = true;
        discard_request(stream);
    }
    signals_.wake();
    drop_if_over(stream);
}

void Http2Exchange::upstream_closed(Http2Stream& stream, std::uint32_t error) {
    stream.upstream_closed = true;
    discard_request(stream);
    if (!stream.client_closed && !stream.to_client.ended) {
        // Refused before it was looked at: the client may try again, so it is told just that.
        std::uint32_t told = error != NGHTTP2_NO_ERROR ? error : std::uint32_t(NGHTTP2_CANCEL);
        client_->reset(stream.client_id, told);
    } else if (!stream.client_closed && stream.end_sent && !stream.to_upstream.ended) {
        client_->reset(stream.client_id, NGHTTP2_NO_ERROR);
    }
    signals_.wake();
    drop_if_over(stream);
}

void Http2Exchange::drop_if_over(Http2Stream& stream) {
    bool over = stream.client_closed && (stream.upstream_id < 0 || stream.upstream_closed);
    if (!over) return;
    if (stream.upstream_id >= 0) by_upstream_.erase(stream.upstream_id);
    streams_.erase(stream.client_id);
}

}  // namespace opensandbox::egress
