#pragma once

#include "opensandbox/bytes.hpp"
#include "opensandbox/connection.hpp"
#include "opensandbox/error.hpp"
#include "opensandbox/registry_auth.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::sdk {

/// An image that the server holds.
struct ImageInfo {
    std::string reference;   ///< "name:tag"
    std::string digest;      ///< "sha256:…"
    std::uint64_t size = 0;  ///< bytes unpacked
    std::chrono::sys_time<std::chrono::microseconds> created_at{};
    bool built_in = false;
};

/// What is different in the config of an image made of another one. What is empty stays as it is
/// below; variables are merged by name, all else is replaced.
struct ImageConfigChange {
    std::optional<std::map<std::string, std::string>> environment;
    std::optional<std::string> user;
    std::optional<std::string> working_directory;
    std::optional<std::vector<std::string>> entrypoint;
    std::optional<std::vector<std::string>> cmd;
    std::optional<std::map<std::string, std::string>> labels;
    std::optional<std::vector<std::string>> exposed_ports;  ///< "80/tcp"
};

/// What became of one layer of a pull or push so far.
struct LayerProgress {
    std::string layer;        ///< "sha256:…"
    std::string status;       ///< "waiting", "present", "downloading", … "done"
    std::uint64_t done = 0;   ///< bytes
    std::uint64_t total = 0;  ///< 0: not known yet
};
using LayerListener = std::function<void(const LayerProgress&)>;

/// Where a push put an image.
struct PushedImage {
    std::string reference;
    std::string digest;      ///< of its manifest at the registry
    std::uint64_t size = 0;  ///< bytes of its blobs
};

struct ImageLayer {
    std::string diff_id;
    std::uint64_t size = 0;  ///< bytes unpacked
};

/// What an image is made of and says of itself.
struct ImageDetails {
    ImageInfo info;
    std::string os;
    std::string architecture;
    std::string source;  ///< "registry/repository" that it was pulled from, or empty
    std::map<std::string, std::string> env;
    std::string user;
    std::string working_directory;
    std::vector<std::string> entrypoint;
    std::vector<std::string> cmd;
    std::map<std::string, std::string> labels;
    std::vector<std::string> exposed_ports;
    std::vector<ImageLayer> layers;  ///< lowest first
};

/// What a pruning took away.
struct PrunedImages {
    std::vector<std::string> removed;  ///< references
    std::uint64_t freed = 0;           ///< bytes
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
    /// Has the server pull an image, with this login, else with one that it has, else with none.
    /// Takes as long as it takes; the server goes on when this is given up.
    boost::asio::awaitable<Result<ImageInfo>> pull(std::string reference,
                                                   std::optional<RegistryAuth> login = {},
                                                   LayerListener listener = {}) const;
    /// Has the server push an image, to `destination` or, when that is empty, to its own name.
    boost::asio::awaitable<Result<PushedImage>> push(std::string reference,
                                                     std::string destination = {},
                                                     std::optional<RegistryAuth> login = {},
                                                     LayerListener listener = {}) const;
    boost::asio::awaitable<Result<ImageDetails>> inspect(std::string reference) const;
    /// Streams the image as a tar archive of an OCI layout; returns its bytes.
    boost::asio::awaitable<Result<std::uint64_t>> export_archive(std::string reference,
                                                                 ByteWriter& sink,
                                                                 Progress progress = {}) const;
    /// Removes images that lost their name to another, or with `all` every one that nothing uses.
    boost::asio::awaitable<Result<PrunedImages>> prune(bool all = false) const;
    /// `conflict` while a sandbox uses it.
    boost::asio::awaitable<Status> remove(std::string reference) const;

  private:
    Connection connection_;
};

}  // namespace opensandbox::sdk
