#pragma once

#include "opensandbox/error.hpp"
#include "opensandbox/retry.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::sdk {

namespace asio = boost::asio;

/// What a caller sets by hand; everything else is found.
struct ConnectionOverrides {
    std::optional<std::string> domain;
    std::optional<std::string> protocol;
    std::optional<std::string> api_key;
    std::optional<std::chrono::milliseconds> request_timeout;
    std::optional<bool> use_server_proxy;
    /// Must exist when given; the default file may be missing.
    std::optional<std::filesystem::path> config_file;
};

/// Where the server is and how to talk to it.
struct ConnectionConfig {
    /// "host", "host:port", "[::1]:8080", also with a path prefix or a scheme in front.
    std::string domain = "127.0.0.1:8080";
    /// "http" or "https". TLS trusts the system's authorities, or those of SSL_CERT_FILE and
    /// SSL_CERT_DIR; sandboxes are then reached by it, too.
    std::string protocol = "http";
    std::string api_key;
    /// For one request and its whole answer, each attempt anew; streams have no limit. 0: none.
    std::chrono::milliseconds request_timeout{30'000};
    RetryPolicy retry;
    /// Reach sandboxes through the server instead of directly.
    bool use_server_proxy = false;

    /// Each value from the first place that has it: `overrides`; the environment
    /// (OPEN_SANDBOX_API_KEY, OPEN_SANDBOX_DOMAIN, OPEN_SANDBOX_PROTOCOL,
    /// OPEN_SANDBOX_REQUEST_TIMEOUT in seconds, OPEN_SANDBOX_USE_SERVER_PROXY); `[connection]` of
    /// ~/.opensandbox/config.toml; the defaults above. A server on this machine's loopback needs no
    /// key here: the one that it keeps in its state directory is read, when this user may.
    /// Fails naming the variable or key whose value is malformed.
    static Result<ConnectionConfig> discover(const ConnectionOverrides& overrides = {});
};

class Transport;

/// A pool of connections to one server, shared by all that is made from it. Cheap to copy. All
/// operations run on `executor`, which must not run them in parallel (one thread, or a strand).
class Connection {
  public:
    /// Checks the configuration; connects nothing yet.
    static Result<Connection> open(asio::any_io_executor executor, ConnectionConfig config);

    /// The same connections with another limit for each request made through the result, and
    /// through all that is made from it. 0: none.
    [[nodiscard]] Connection with_request_timeout(std::chrono::milliseconds timeout) const;
    /// The same with another policy; `invalid_argument` for one that is out of range.
    [[nodiscard]] Result<Connection> with_retry(RetryPolicy policy) const;

    [[nodiscard]] const ConnectionConfig& config() const;
    [[nodiscard]] asio::any_io_executor executor() const;
    /// The server's version; also a check that it is there. Needs no API key.
    asio::awaitable<Result<std::string>> server_version() const;

    /// For the library's own use.
    [[nodiscard]] const std::shared_ptr<Transport>& transport() const { return transport_; }

  private:
    explicit Connection(std::shared_ptr<Transport> transport);
    std::shared_ptr<Transport> transport_;
};

}  // namespace opensandbox::sdk
