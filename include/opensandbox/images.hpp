#pragma once

#include "opensandbox/bytes.hpp"
#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::sdk {

/// An image that the server holds.
struct ImageInfo {
    ImageInfo() = default;
    std::string reference;   ///< "name:tag"
    std::string digest;      ///< "sha256:…"
    std::uint64_t size = 0;  ///< bytes unpacked
    std::chrono::sys_time<std::chrono::microseconds> created_at{};
    bool built_in = false;
};

/// The images of a server whose runtime is `native`.
class Images {
  public:
    explicit Images(Connection connection) : connection_(std::move(connection)) {}

    boost::asio::awaitable<Result<std::vector<ImageInfo>>> list() const;
    /// Streams an archive: OCI layout, `docker save` or a root file system; plain, gzip or zstd.
    boost::asio::awaitable<Result<ImageInfo>> import_archive(std::string reference,
                                                             ByteReader& archive,
                                                             Progress progress = {}) const;
    /// `conflict` while a sandbox uses it.
    boost::asio::awaitable<Status> remove(std::string reference) const;

  private:
    Connection connection_;
};

}  // namespace opensandbox::sdk
