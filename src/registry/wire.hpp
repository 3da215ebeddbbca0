#pragma once

#include "http/client.hpp"
#include "registry/location.hpp"
#include "registry/options.hpp"

#include <memory>
#include <string>

namespace opensandbox::registry {

/// Where one request goes.
struct Target {
    http::Origin origin;
    std::string target;  ///< path and query, raw

    [[nodiscard]] bool same_origin(const Target& other) const {
        return origin.host == other.origin.host && origin.port == other.origin.port &&
               static_cast<bool>(origin.tls) == static_cast<bool>(other.origin.tls);
    }
};

/// Connections to registries and whom they trust. Lives on one event loop.
class Wire {
  public:
    Wire(asio::any_io_executor executor, const RegistryOptions& options);

    [[nodiscard]] http::Client& client() { return client_; }
    [[nodiscard]] const RegistryOptions& options() const { return options_; }
    [[nodiscard]] asio::any_io_executor executor() const { return executor_; }

    /// The host itself, with TLS or without.
    [[nodiscard]] http::Origin origin(const Location& location, bool secured) const;
    /// Whether plain HTTP is what the configuration says of it.
    [[nodiscard]] bool is_plain(const Location& location) const;
    /// An absolute URL, or a path on the same host as `from`. `bad_gateway` when it is neither, or
    /// leaves TLS for a host that is not named as plain.
    [[nodiscard]] Result<Target> resolve(std::string_view url, const Target& from) const;

  private:
    [[nodiscard]] std::shared_ptr<net::TlsClient> trust(const std::string& host,
                                                        std::uint16_t port) const;

    asio::any_io_executor executor_;
    RegistryOptions options_;
    std::shared_ptr<net::TlsClient> system_;
    std::shared_ptr<net::TlsClient> private_;  ///< null: no ca_file
    http::Client client_;
};

}  // namespace opensandbox::registry
