#include "egress/intercept/http2/session.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::egress {
namespace {

constexpr std::int32_t kStreamWindow = 4 * 1024 * 1024;
/// Streams that a client may reset at once, and then each second (rapid reset, CVE-2023-44487).
constexpr std::uint64_t kResetBurst = 400;
constexpr std::uint64_t kResetRate = 50;
/// SETTINGS and PING frames of which the answers wait.
constexpr std::size_t kMaxAnswers = 128;

template <auto Free>
struct Release {
    template <class T>
    void operator()(T* object) const {
        Free(object);
    }
};
using CallbackTable =
    std::unique_ptr<nghttp2_session_callbacks, Release<nghttp2_session_callbacks_del>>;
using Options = std::unique_ptr<nghttp2_option, Release<nghttp2_option_del>>;

std::string_view view(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

Options make_options(const RelayLimits& limits) {
    nghttp2_option* raw = nullptr;
    if (nghttp2_option_new(&raw) != 0) return nullptr;
    Options options(raw);
    nghttp2_option_set_no_auto_window_update(raw, 1);
    nghttp2_option_set_no_closed_streams(raw, 1);
    nghttp2_option_set_max_outbound_ack(raw, kMaxAnswers);
    nghttp2_option_set_stream_reset_rate_limit(raw, kResetBurst, kResetRate);
    // What was let in must be let out; the bound counts worse than one for one.
    nghttp2_option_set_max_send_header_block_length(raw, 2 * limits.max_header + 64 * 1024);
    // One HEADERS frame of 16 KiB and as many more as the fields may fill.
    nghttp2_option_set_max_continuations(raw, limits.max_header / (16 * 1024) + 1);
    return options;
}

}  // namespace

void Http2Header::add(std::string_view name, std::string_view value) {
    std::string lower(name);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    std::string clean(value);
    for (char& c : clean) {
        if (c == '\r' || c == '\n' || c == '\0') c = ' ';
    }
    entries_.add(std::move(lower), std::move(clean));
}

void Http2Header::add(const http::Fields& fields) {
    for (const auto& [name, value] : fields)
        add(name, value);
}

std::vector<nghttp2_nv> Http2Header::list() const {
    std::vector<nghttp2_nv> all;
    all.reserve(entries_.size());
    auto bytes = [](const std::string& text) {
        return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
    };
    for (const auto& [name, value] : entries_) {
        all.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    return all;
}

/// What nghttp2 calls, with the session as its user data.
struct Http2Session::Callbacks {
    static Http2Events& events(void* user) { return static_cast<Http2Session*>(user)->events_; }

    static int begin(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        if (frame->hd.type == NGHTTP2_HEADERS) events(user).on_header_begin(frame->hd.stream_id);
        return 0;
    }
    static int field(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                     std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                     std::uint8_t, void* user) {
        if (frame->hd.type != NGHTTP2_HEADERS) return 0;
        events(user).on_field(frame->hd.stream_id, view(name, name_size), view(value, value_size));
        return 0;
    }
    static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        bool ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        std::int32_t stream = frame->hd.stream_id;
        if (frame->hd.type == NGHTTP2_GOAWAY) events(user).on_goaway();
        if (frame->hd.type == NGHTTP2_HEADERS) events(user).on_header_end(stream, ended);
        bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
        if (carries && ended) events(user).on_end(stream);
        return 0;
    }
    static int data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes,
                    std::size_t size, void* user) {
        events(user).on_data(stream, view(bytes, size));
        return 0;
    }
    static int sent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
        if (carries && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            events(user).on_end_sent(frame->hd.stream_id);
        }
        return 0;
    }
    /// A request that the server no longer takes never became a stream: nobody else would tell.
    static int not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
        bool request =
            frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
        if (request) events(user).on_stream_close(frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    static int close(nghttp2_session*, std::int32_t stream, std::uint32_t error, void* user) {
        events(user).on_stream_close(stream, error);
        return 0;
    }
    static ssize_t supply(nghttp2_session*, std::int32_t stream, std::uint8_t* into,
                          std::size_t room, std::uint32_t* flags, nghttp2_data_source*,
                          void* user) {
        return static_cast<Http2Session*>(user)->take_supply(stream, into, room, flags);
    }

    static CallbackTable make() {
        nghttp2_session_callbacks* raw = nullptr;
        if (nghttp2_session_callbacks_new(&raw) != 0) return nullptr;
        CallbackTable table(raw);
        nghttp2_session_callbacks_set_on_begin_headers_callback(raw, begin);
        nghttp2_session_callbacks_set_on_header_callback(raw, field);
        nghttp2_session_callbacks_set_on_frame_recv_callback(raw, frame);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(raw, data);
        nghttp2_session_callbacks_set_on_frame_send_callback(raw, sent);
        nghttp2_session_callbacks_set_on_frame_not_send_callback(raw, not_sent);
        nghttp2_session_callbacks_set_on_stream_close_callback(raw, close);
        return table;
    }
};

std::unique_ptr<Http2Session> Http2Session::make(Role role, const RelayLimits& limits,
                                                 Http2Events& events) {
    std::unique_ptr<Http2Session> made(new Http2Session(events));
    if (!made->settle(role, limits)) return nullptr;
    return made;
}

bool Http2Session::settle(Role role, const RelayLimits& limits) {
    CallbackTable callbacks = Callbacks::make();
    Options options = make_options(limits);
    if (!callbacks || !options) return false;
    bool server = role == Role::server;
    int failed = server
                     ? nghttp2_session_server_new2(&session_, callbacks.get(), this, options.get())
                     : nghttp2_session_client_new2(&session_, callbacks.get(), this, options.get());
    if (failed != 0) return false;
    nghttp2_settings_entry peculiar{NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
    if (server) peculiar = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.max_streams};
    const std::array<nghttp2_settings_entry, 3> settings{{
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits.max_header)},
        peculiar,
    }};
    return nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) ==
           0;
}

Http2Session::~Http2Session() {
    nghttp2_session_del(session_);
}

ssize_t Http2Session::take_supply(std::int32_t stream, std::uint8_t* into, std::size_t room,
                                  std::uint32_t* flags) {
    auto supply = events_.supply(stream, reinterpret_cast<char*>(into), room);
    if (supply.count == 0 && !supply.ended) return NGHTTP2_ERR_DEFERRED;
    if (supply.ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (supply.ended && supply.trailers != nullptr) {
        Http2Header trailers;
        trailers.add(*supply.trailers);
        auto list = trailers.list();
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session_, stream, list.data(), list.size()) != 0) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    return static_cast<ssize_t>(supply.count);
}

bool Http2Session::receive(std::string_view bytes) {
    ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    return taken == static_cast<ssize_t>(bytes.size());
}

bool Http2Session::collect(std::string& out, std::size_t limit) {
    while (out.size() < limit) {
        const std::uint8_t* bytes = nullptr;
        ssize_t count = nghttp2_session_mem_send(session_, &bytes);
        if (count < 0) return false;
        if (count == 0) return true;
        out += view(bytes, static_cast<std::size_t>(count));
    }
    return true;
}

bool Http2Session::over() const {
    return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

std::size_t Http2Session::queued() const {
    return nghttp2_session_get_outbound_queue_size(session_);
}

std::int32_t Http2Session::request(const Http2Header& header, bool body) {
    auto list = header.list();
    nghttp2_data_provider provider{{.fd = 0}, Callbacks::supply};
    return nghttp2_submit_request(session_, nullptr, list.data(), list.size(),
                                  body ? &provider : nullptr, nullptr);
}

bool Http2Session::respond(std::int32_t stream, const Http2Header& header, bool body) {
    auto list = header.list();
    nghttp2_data_provider provider{{.fd = 0}, Callbacks::supply};
    return nghttp2_submit_response(session_, stream, list.data(), list.size(),
                                   body ? &provider : nullptr) == 0;
}

bool Http2Session::interim(std::int32_t stream, const Http2Header& header) {
    auto list = header.list();
    return nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream, nullptr, list.data(),
                                  list.size(), nullptr) == 0;
}

void Http2Session::resume(std::int32_t stream) {
    nghttp2_session_resume_data(session_, stream);
}

void Http2Session::reset(std::int32_t stream, std::uint32_t error) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, error);
}

void Http2Session::consume(std::int32_t stream, std::size_t count) {
    nghttp2_session_consume(session_, stream, count);
}

void Http2Session::widen() {
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWideWindow);
}

void Http2Session::go_away() {
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                          nullptr, 0);
}

}  // namespace opensandbox::egress
