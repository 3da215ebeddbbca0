#pragma once

#include "opensandbox/bytes.hpp"
#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
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

/// What is different in the config of an image made of another one. What is empty stays as it is
/// below; variables are merged by name, all else is replaced.
struct ImageConfigChange {
    ImageConfigChange() = default;
    std::optional<std::map<std::string, std::string>> environment;
    std::optional<std::string> user;
    std::optional<std::string> working_directory;
    std::optional<std::vector<std::string>> entrypoint;
    std::optional<std::vector<std::string>> cmd;
    std::optional<std::map<std::string, std::string>> labels;
    std::optional<std::vector<std::string>> exposed_ports;  ///< "80/tcp"
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
    /// Names the layers of `source` anew, with another config if wanted.
    boost::asio::awaitable<Result<ImageInfo>> tag(std::string source, std::string reference,
                                                  ImageConfigChange change = {}) const;
    /// `conflict` while a sandbox uses it.
    boost::asio::awaitable<Status> remove(std::string reference) const;

  private:
    Connection connection_;
};

}  // namespace opensandbox::sdk
