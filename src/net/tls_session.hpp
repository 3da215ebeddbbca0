#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_ctx_st;

namespace opensandbox::net {

/// One TLS connection on a non-blocking socket: steps that never wait, each telling what to wait
/// for before it is taken again.
class TlsSession {
  public:
    enum class Want : std::uint8_t { nothing, read, write, failed };
    struct Outcome {
        Want want = Want::nothing;
        std::size_t bytes = 0;  ///< moved, with `nothing`; 0 from read(): the peer ended in order
        std::string reason;     ///< with `failed`
    };

    /// A client's session that will accept only a certificate for `host` when it verifies.
    static Result<TlsSession> open(ssl_ctx_st* context, const std::string& host, bool verify);

    /// Takes over a session that is set up: a server's, or a client's with settings of its own.
    static TlsSession adopt(ssl_st* session) { return TlsSession(session); }

    /// The socket is borrowed: no step may be taken once it is closed. `received` are bytes that
    /// were already read from it: they come first.
    void attach(int fd, std::string received = {});
    /// For what is not asked here (the protocol agreed on, the peer's certificate). Borrowed.
    [[nodiscard]] ssl_st* handle() const { return session_.get(); }
    Outcome handshake();
    Outcome read(std::span<char> into);
    /// Takes at least one of the bytes, or sends what it took before when there are none. What it
    /// took may still have to be sent: has_unsent(), until write() is called again.
    Outcome write(std::string_view bytes);
    [[nodiscard]] bool has_unsent() const;
    /// Tells the peer, if that is possible without waiting, that no more will be sent.
    void say_goodbye();
    /// Bytes were received that no read() has returned.
    [[nodiscard]] bool has_pending() const;

  private:
    struct Deleter {
        void operator()(ssl_st* session) const;
    };
    explicit TlsSession(ssl_st* session) : session_(session) {}
    Outcome judge(int result);
    Outcome judge_end_as_failure(int result);
    Outcome send_unsent();

    std::unique_ptr<ssl_st, Deleter> session_;
};

}  // namespace opensandbox::net
