#include "egress/intercept/core/message_fields.hpp"
#include "egress/intercept/http2/exchange.hpp"

#include <exception>

namespace opensandbox::egress {

/// Takes the pseudo-fields out of a request; nghttp2 saw to it that they are complete and sound.
std::optional<RefusedRequest> Http2Exchange::read_request(Http2Stream& stream,
                                                          http::Fields& pseudo) {
    http::Fields& fields = stream.request.fields;
    for (std::string_view name : {":method", ":scheme", ":authority", ":path", ":protocol"}) {
        if (auto value = fields.get(name)) pseudo.add(std::string(name), std::string(*value));
        fields.erase(name);
    }
    stream.method = pseudo.get(":method").value_or("");
    if (stream.request.too_large) {
        return RefusedRequest(431, "egress: the request's header is too large");
    }
    if (pseudo.has(":protocol") || stream.method == "CONNECT") {
        return RefusedRequest(405, "the method is not allowed here");
    }
    std::string_view scheme = guard_.site().tls ? "https" : "http";
    if (pseudo.get(":scheme").value_or("") != scheme) {
        return RefusedRequest(421, "the request is not for " + std::string(scheme));
    }
    auto host = fields.get("host");
    if (host && !pseudo.has(":authority")) {
        pseudo.set(":authority", std::string(*host));
    } else if (host && *host != *pseudo.get(":authority")) {
        return RefusedRequest(400, "the request names two hosts");
    }
    fields.erase("host");
    return std::nullopt;
}

void Http2Exchange::judge(Http2Stream& stream) {
    stream.judged = true;
    http::Fields pseudo;
    auto refusal = read_request(stream, pseudo);
    http::Fields fields = std::move(stream.request.fields);
    stream.request = IncomingHeader();
    if (refusal) {
        refuse(stream, refusal->status, refusal->text);
        return;
    }
    bool trailers = fields.has_token("te", "trailers");
    strip_hop_fields(fields);
    std::string path(pseudo.get(":path").value_or(""));
    std::string authority(pseudo.get(":authority").value_or(""));
    GuardedRequest request(stream.method, authority, path, fields);
    stream.treatment = guard_.admit(request);
    if (stream.treatment.refusal) {
        refuse(stream, stream.treatment.refusal->status, stream.treatment.refusal->text);
        return;
    }
    if (trailers) fields.set("te", "trailers");
    http::Fields outgoing{{":method", stream.method},
                          {":scheme", guard_.site().tls ? "https" : "http"},
                          {":authority", guard_.authority()},
                          {":path", path}};
    for (const auto& [name, value] : fields)
        outgoing.add(name, value);
    stream.outgoing = std::move(outgoing);
    if (stream.treatment.rewrite_body) {
        stream.collecting = true;
    } else {
        start(stream);
    }
}

/// Sends a judged request on, as soon as there is a server.
void Http2Exchange::start(Http2Stream& stream) {
    switch (state_) {
        case Upstream::none:
            state_ = Upstream::opening;
            signals_.want_upstream(guard_.host());
            break;
        case Upstream::opening: break;
        case Upstream::open: submit(stream); break;
        case Upstream::failed:
        case Upstream::lost: refuse(stream, 502, "egress: " + failure_); break;
    }
}

void Http2Exchange::submit(Http2Stream& stream) {
    Http2Header header;
    header.add(*stream.outgoing);
    stream.outgoing.reset();
    bool bodiless = stream.to_upstream.ended && stream.to_upstream.held() == 0 &&
                    stream.to_upstream.trailers.size() == 0;
    std::int32_t id = upstream_->request(header, !bodiless);
    if (id < 0) {
        refuse(stream, 502, "egress: the server takes no more requests");
        return;
    }
    stream.upstream_id = id;
    by_upstream_[id] = &stream;
    signals_.wake();
}

void Http2Exchange::request_data(Http2Stream& stream, std::string_view bytes) {
    if (stream.discarding) {
        client_->consume(stream.client_id, bytes.size());
        signals_.wake();
        return;
    }
    stream.to_upstream.put(bytes);
    if (stream.collecting) {
        client_->consume(stream.client_id, bytes.size());
        signals_.wake();
        if (stream.to_upstream.held() > limits_.max_rewritten_body) {
            stream.request_is_ours = true;
            refuse(stream, 413,
                   "egress: the body is larger than " + std::to_string(limits_.max_rewritten_body) +
                       " bytes");
        }
        return;
    }
    if (stream.upstream_id < 0) return;
    upstream_->resume(stream.upstream_id);
    signals_.wake();
}

void Http2Exchange::request_end(Http2Stream& stream) {
    stream.to_upstream.ended = true;
    if (stream.discarding) return;
    if (stream.collecting) {
        finish_collecting(stream);
    } else if (stream.upstream_id >= 0) {
        upstream_->resume(stream.upstream_id);
        signals_.wake();
    }
}

void Http2Exchange::finish_collecting(Http2Stream& stream) {
    stream.collecting = false;
    stream.request_is_ours = true;
    std::string body(stream.to_upstream.view());
    if (!body.empty()) {
        std::optional<std::string> made;
        try {
            made = stream.treatment.rewrite_body(std::move(body));
        } catch (const std::exception&) {
            made.reset();
        }
        if (!made) {
            refuse(stream, 502, "egress: the body could not be substituted");
            return;
        }
        stream.to_upstream.drop(stream.to_upstream.held());
        stream.to_upstream.put(*made);
        stream.outgoing->set("content-length", std::to_string(made->size()));
    }
    start(stream);
}

}  // namespace opensandbox::egress
