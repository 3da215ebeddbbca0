#pragma once

#include "tls_peers.hpp"

#include <map>
#include <nghttp2/nghttp2.h>

namespace opensandbox::egress::test {

/// One side of HTTP/2 over a blocking TLS connection, straight on nghttp2.
class Http2Peer {
  public:
    struct Message {
        std::multimap<std::string, std::string> fields;
        std::string body;
        bool ended = false;
        bool closed = false;
        std::uint32_t error = 0;
        std::vector<std::string> interim;
        std::string get(const std::string& name) const {
            auto found = fields.find(name);
            return found == fields.end() ? "" : found->second;
        }
    };
    using Fields = std::vector<std::pair<std::string, std::string>>;

    Http2Peer(SSL* session, bool server) : ssl_(session) {
        nghttp2_session_callbacks* table = nullptr;
        nghttp2_session_callbacks_new(&table);
        nghttp2_session_callbacks_set_on_header_callback(table, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table, on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(table, on_frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(table, on_close);
        if (server) {
            nghttp2_session_server_new(&session_, table, this);
        } else {
            nghttp2_session_client_new(&session_, table, this);
        }
        nghttp2_session_callbacks_del(table);
        nghttp2_settings_entry window{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20};
        nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &window, 1);
        nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, 1 << 22);
    }
    ~Http2Peer() { nghttp2_session_del(session_); }
    Http2Peer(const Http2Peer&) = delete;
    Http2Peer& operator=(const Http2Peer&) = delete;

    /// Begins a request; with `more` its body goes on by send_body().
    std::int32_t request(const std::string& method, const std::string& path, Fields fields = {},
                         const std::string& body = "", bool more = false,
                         const std::string& authority = "api.example.com") {
        Fields all{
            {":method", method}, {":scheme", "https"}, {":authority", authority}, {":path", path}};
        all.insert(all.end(), fields.begin(), fields.end());
        auto list = name_values(all);
        bool has_body = !body.empty() || more;
        nghttp2_data_provider provider{{.ptr = nullptr}, supply};
        std::int32_t id = nghttp2_submit_request(session_, nullptr, list.data(), list.size(),
                                                 has_body ? &provider : nullptr, nullptr);
        outgoing_[id] = {body, !more, {}, 0};
        flush();
        return id;
    }
    void respond(std::int32_t id, const std::string& status, Fields fields = {},
                 const std::string& body = "", bool more = false, Fields trailers = {}) {
        Fields all{{":status", status}};
        all.insert(all.end(), fields.begin(), fields.end());
        auto list = name_values(all);
        bool has_body = !body.empty() || more || !trailers.empty();
        nghttp2_data_provider provider{{.ptr = nullptr}, supply};
        outgoing_[id] = {body, !more, std::move(trailers), 0};
        nghttp2_submit_response(session_, id, list.data(), list.size(),
                                has_body ? &provider : nullptr);
        flush();
    }
    void interim(std::int32_t id, const std::string& status, Fields fields) {
        fields.insert(fields.begin(), {":status", status});
        auto list = name_values(fields);
        nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, id, nullptr, list.data(), list.size(),
                               nullptr);
        flush();
    }
    void send_body(std::int32_t id, const std::string& bytes, bool last, Fields trailers = {}) {
        outgoing_[id].bytes += bytes;
        outgoing_[id].last = last;
        outgoing_[id].trailers = std::move(trailers);
        nghttp2_session_resume_data(session_, id);
        flush();
    }
    void reset(std::int32_t id, std::uint32_t error) {
        nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, error);
        flush();
    }
    void go_away(std::int32_t last) {
        nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last, 0, nullptr, 0);
        flush();
    }

    /// Reads and writes until the condition holds; false when the connection ends before.
    bool until(const std::function<bool()>& condition) {
        std::vector<char> piece(16384);
        while (!condition()) {
            if (!flush()) return false;
            int count = SSL_read(ssl_, piece.data(), static_cast<int>(piece.size()));
            if (count <= 0) return condition();
            auto* bytes = reinterpret_cast<std::uint8_t*>(piece.data());
            if (nghttp2_session_mem_recv(session_, bytes, static_cast<std::size_t>(count)) < 0) {
                return condition();
            }
        }
        flush();
        return true;
    }
    bool until_ended(std::int32_t id) {
        return until([&] { return messages[id].ended || messages[id].closed; });
    }
    bool flush() {
        const std::uint8_t* bytes = nullptr;
        while (true) {
            ssize_t count = nghttp2_session_mem_send(session_, &bytes);
            if (count < 0) return false;
            if (count == 0) return true;
            std::string_view piece(reinterpret_cast<const char*>(bytes),
                                   static_cast<std::size_t>(count));
            if (!say(ssl_, piece)) return false;
        }
    }
    /// Bytes of a body that did not go out.
    std::size_t unsent(std::int32_t id) { return outgoing_[id].left(); }

    std::map<std::int32_t, Message> messages;
    std::int32_t last_stream = 0;
    bool gone_away = false;

  private:
    struct Outgoing {
        std::string bytes;
        bool last = true;
        Fields trailers;
        std::size_t taken = 0;
        [[nodiscard]] std::size_t left() const { return bytes.size() - taken; }
    };
    static std::vector<nghttp2_nv> name_values(const Fields& fields) {
        std::vector<nghttp2_nv> list;
        for (const auto& [name, value] : fields) {
            auto bytes = [](const std::string& text) {
                return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
            };
            list.push_back({bytes(name), bytes(value), name.size(), value.size(), 0});
        }
        return list;
    }
    static Http2Peer& self(void* user) { return *static_cast<Http2Peer*>(user); }
    static std::string text(const std::uint8_t* bytes, std::size_t size) {
        return {reinterpret_cast<const char*>(bytes), size};
    }
    static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                         std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                         std::uint8_t, void* user) {
        Message& message = self(user).messages[frame->hd.stream_id];
        std::string field = text(name, name_size);
        std::string content = text(value, value_size);
        if (field == ":status" && content[0] == '1') message.interim.push_back(content);
        message.fields.emplace(field, content);
        if (field == ":status" && content[0] == '1') message.fields.erase(field);
        return 0;
    }
    static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                       std::size_t size, void* user) {
        self(user).messages[id].body += text(bytes, size);
        return 0;
    }
    static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
        if (frame->hd.type == NGHTTP2_GOAWAY) self(user).gone_away = true;
        if (frame->hd.type == NGHTTP2_HEADERS) self(user).last_stream = frame->hd.stream_id;
        if (carries && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            self(user).messages[frame->hd.stream_id].ended = true;
        }
        return 0;
    }
    static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
        self(user).messages[id].closed = true;
        self(user).messages[id].error = error;
        return 0;
    }
    static ssize_t supply(nghttp2_session* session, std::int32_t id, std::uint8_t* into,
                          std::size_t room, std::uint32_t* flags, nghttp2_data_source*,
                          void* user) {
        Outgoing& from = self(user).outgoing_[id];
        if (from.left() == 0 && !from.last) return NGHTTP2_ERR_DEFERRED;
        std::size_t count = std::min(room, from.left());
        std::memcpy(into, from.bytes.data() + from.taken, count);
        from.taken += count;
        if (from.taken > (1U << 20)) {
            from.bytes.erase(0, from.taken);
            from.taken = 0;
        }
        if (from.left() == 0 && from.last) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
            if (!from.trailers.empty()) {
                *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
                auto list = name_values(from.trailers);
                nghttp2_submit_trailer(session, id, list.data(), list.size());
            }
        }
        return static_cast<ssize_t>(count);
    }

    SSL* ssl_;
    nghttp2_session* session_ = nullptr;
    std::map<std::int32_t, Outgoing> outgoing_;
};

}  // namespace opensandbox::egress::test
