#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a client says before anything was answered (RFC 8446 section 4.1.2, RFC 6066 section 3):
/// enough to judge a connection, and no byte is consumed, so that it can be passed on as it came.
namespace opensandbox::egress {

struct ClientHello {
    /// The name as sent, not checked beyond its bytes being printable ASCII; empty when none.
    std::optional<std::string> server_name;
    /// Protocols offered, in order; empty when the extension is missing.
    std::vector<std::string> protocols;
    /// An encrypted hello, or one that only looks so (GREASE): the two cannot be told apart.
    bool encrypted = false;
};

/// Looks for a hello in the bytes that a connection begins with. Records may split it anywhere.
class ClientHelloParser {
  public:
    enum class State : std::uint8_t {
        incomplete,  ///< more bytes are needed
        complete,
        not_tls,    ///< the first bytes are of something else
        malformed,  ///< TLS, but broken; error() says how
    };
    /// Of all bytes on the wire that belong to a hello, record headers included.
    static constexpr std::size_t kMaxBytes = 20 * 1024;
    /// Of the hello itself.
    static constexpr std::size_t kMaxHello = 16 * 1024;

    /// `bytes` is everything received since the connection began.
    State parse(std::string_view bytes);
    [[nodiscard]] const ClientHello& hello() const { return hello_; }
    [[nodiscard]] std::string_view error() const { return error_; }

  private:
    State fail(std::string_view reason);
    State take_records(std::string_view bytes);

    ClientHello hello_;
    std::string_view error_;
    std::size_t used_ = 0;   ///< bytes of whole records seen
    std::string handshake_;  ///< their content
};

}  // namespace opensandbox::egress
