#pragma once

#include "base/unique_fd.hpp"

#include <netinet/in.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>

namespace opensandbox::bench {

/// Ends the measure with what OpenSSL says.
[[noreturn]] void fail_tls(const std::string& what);

/// A client of one server that keeps no sessions: every handshake is a full one.
class TlsClient {
  public:
    using Session = std::unique_ptr<SSL, decltype(&SSL_free)>;

    struct Connection {
        Connection(UniqueFd f, Session s) : fd(std::move(f)), session(std::move(s)) {}
        UniqueFd fd;
        Session session;
    };

    /// `address` is that of an IPv4 host; the server is at port 443.
    TlsClient(std::string host, const std::string& address, const std::string& authority);

    [[nodiscard]] Connection connect() const;
    /// A request and its answer, which is short.
    void request(SSL* session, bool last) const;
    /// A request and its answer; each piece of its content is told by its size, until `more`, which
    /// takes it, says no. Whether it said yes to all.
    template <class More>
    bool download(SSL* session, const More& more) const {
        const Answer answer = ask(session, "big", false);
        std::uint64_t left = answer.length - answer.content.size();
        std::string piece(kPiece, '\0');
        while (left > 0) {
            const std::size_t count = read(session, piece);
            left -= std::min<std::uint64_t>(left, count);
            if (!more(count)) return false;
        }
        return true;
    }

  private:
    static constexpr std::size_t kPiece = std::size_t{128} * 1024;

    struct Answer {
        std::uint64_t length = 0;
        std::string content;  ///< what of it came with the head
    };
    [[nodiscard]] Answer ask(SSL* session, const std::string& path, bool last) const;
    static std::size_t read(SSL* session, std::string& piece);

    std::string host_;
    sockaddr_in address_{};
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
};

}  // namespace opensandbox::bench
