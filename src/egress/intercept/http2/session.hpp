#pragma once

#include "egress/intercept/core/relay.hpp"
#include "http/fields.hpp"

#include <cstdint>
#include <memory>
#include <nghttp2/nghttp2.h>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

/// What a session tells its owner while it is fed. Stream numbers are the session's.
class Http2Events {
  public:
    virtual ~Http2Events() = default;
    virtual void on_header_begin(std::int32_t stream) = 0;
    virtual void on_field(std::int32_t stream, std::string_view name, std::string_view value) = 0;
    /// All fields came; `ended`: nothing follows.
    virtual void on_header_end(std::int32_t stream, bool ended) = 0;
    virtual void on_data(std::int32_t stream, std::string_view bytes) = 0;
    /// The sender's side of the stream is over.
    virtual void on_end(std::int32_t stream) = 0;
    /// Asks for body bytes to send: puts them at `into` and returns how many; 0 with neither flag:
    /// none now, until resume().
    struct Supply {
        std::size_t count = 0;
        bool ended = false;
        const http::Fields* trailers = nullptr;  ///< sent behind the body, with `ended`
    };
    virtual Supply supply(std::int32_t stream, char* into, std::size_t room) = 0;
    /// Our side of the stream was sent to its end.
    virtual void on_end_sent(std::int32_t stream) = 0;
    /// The stream is over on both sides; `error` is 0 when in order.
    virtual void on_stream_close(std::int32_t stream, std::uint32_t error) = 0;
    virtual void on_goaway() = 0;
};

/// A list of fields as nghttp2 takes it.
class Http2Header {
  public:
    void add(std::string_view name, std::string_view value);
    /// Names in lower case; line breaks and the like become blanks.
    void add(const http::Fields& fields);

  private:
    friend class Http2Session;
    http::Fields entries_;
    std::vector<nghttp2_nv> list() const;
};

/// One side of an HTTP/2 connection, without its transport: bytes in, bytes out, events between.
/// Received bytes count against the windows until consume().
class Http2Session {
  public:
    enum class Role : std::uint8_t { server, client };
    /// `events` is borrowed. Null when memory is short.
    static std::unique_ptr<Http2Session> make(Role role, const RelayLimits& limits,
                                              Http2Events& events);
    ~Http2Session();
    Http2Session(const Http2Session&) = delete;
    Http2Session& operator=(const Http2Session&) = delete;

    /// False when the connection is beyond saving.
    bool receive(std::string_view bytes);
    /// Appends what is to be sent, until about `limit` bytes are there. False as above.
    bool collect(std::string& out, std::size_t limit);
    /// Neither sends nor reads any more.
    [[nodiscard]] bool over() const;
    /// Frames that wait to be sent.
    [[nodiscard]] std::size_t queued() const;

    /// The stream's number, negative when refused. `body`: supply() will be asked.
    std::int32_t request(const Http2Header& header, bool body);
    bool respond(std::int32_t stream, const Http2Header& header, bool body);
    bool interim(std::int32_t stream, const Http2Header& header);
    /// There is something to supply() again.
    void resume(std::int32_t stream);
    void reset(std::int32_t stream, std::uint32_t error);
    /// Gives window back for bytes that went on (or were dropped).
    void consume(std::int32_t stream, std::size_t count);
    /// Lets the peer send kWideWindow bytes ahead in all, instead of the 64 KiB it begins with.
    void widen();
    static constexpr std::int32_t kWideWindow = 8 * 1024 * 1024;
    /// No new streams; those there end in their own time.
    void go_away();

  private:
    struct Callbacks;
    explicit Http2Session(Http2Events& events) : events_(events) {}
    bool settle(Role role, const RelayLimits& limits);
    ssize_t take_supply(std::int32_t stream, std::uint8_t* into, std::size_t room,
                        std::uint32_t* flags);

    Http2Events& events_;
    nghttp2_session* session_ = nullptr;
};

}  // namespace opensandbox::egress
