#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

/// OCI images on disk: content-addressed layers, unpacked once, shared as overlay lowers.
namespace opensandbox::image {

/// The part of an OCI image config that a sandbox honours.
struct ImageConfig {
    std::vector<std::pair<std::string, std::string>> env;
    std::string user;  ///< "uid[:gid]" or names, as in the config
    std::string working_directory;
    std::vector<std::string> entrypoint;
    std::vector<std::string> cmd;
    std::map<std::string, std::string> labels;
    std::vector<std::string> exposed_ports;  ///< "8080/tcp"; said, not enforced
};

/// One image as `image list` shows it.
struct ImageInfo {
    std::string reference;   ///< "name:tag"; the built-in one is "host"
    std::string digest;      ///< sha256:… of the manifest (or of the layer set, when imported raw)
    std::uint64_t size = 0;  ///< bytes unpacked
    Timestamp created_at{};
    bool built_in = false;
};

/// What the native runtime mounts.
struct Rootfs {
    std::string digest;
    std::vector<std::filesystem::path> layers;  ///< lower directories, uppermost first
    std::filesystem::path usr;                  ///< host's /usr for the built-in image, else empty
    ImageConfig config;
};

/// Limits on what an import may bring. Sizes in bytes.
struct ImportLimits {
    std::uint64_t max_unpacked = 64ULL << 30;
    std::uint64_t max_entries = 2'000'000;
    /// Unpacked over packed, counted past the first 64 MiB. Holes of files and long runs of zeros
    /// in layers, which become holes, do not count.
    std::uint64_t max_ratio = 200;
};

/// One layer of a stored image.
struct LayerInfo {
    std::string diff_id;         ///< hex of the digest of its tar stream
    std::uint64_t size = 0;      ///< bytes of its files
    std::filesystem::path path;  ///< its directory, as overlayfs reads it
};

/// The documents that an image came with, byte for byte. With them it can be pushed as it was.
struct ImageDocuments {
    std::string media_type;  ///< of the manifest
    std::string manifest;
    std::string config;
    std::string source;  ///< "registry/repository" that it was pulled from; empty: imported
};

/// All that the store knows of an image.
struct ImageDetails {
    ImageInfo info;
    ImageConfig config;
    std::vector<LayerInfo> layers;            ///< lowest first, as in the image
    std::optional<ImageDocuments> documents;  ///< absent: a root file system, or made here
};

/// What a pruning took away.
struct PruneReport {
    std::vector<std::string> removed;  ///< references
    std::uint64_t freed = 0;           ///< bytes of layers that no image has any more
};

/// An image's parts in a private directory of the store, ready to be taken in (staged_image.hpp).
struct StagedImage;
/// Whether the store holds the layer with this diff id (hex).
using HasLayer = std::function<bool(const std::string& hex)>;
/// Puts those layers of an image below `directory` that the store lacks, each named by its diff
/// id. Called again, with an empty directory, when one that was there went meanwhile.
using Stager = std::function<Result<StagedImage>(const std::filesystem::path& directory,
                                                 const HasLayer& has_layer)>;

/// An image to be made of another one (derivation.hpp).
struct Derivation;

/// Supplies an archive's bytes; 0 at the end, throws nothing.
using ByteSource = std::function<Result<std::size_t>(std::span<char>)>;

/// The image store of one state directory. All functions block; call them on the blocking pool.
/// Thread-safe. Every change is atomic: a failed import leaves nothing.
class Store {
  public:
    /// Makes the directories and removes what an interrupted import left.
    static Result<std::unique_ptr<Store>> open(const std::filesystem::path& directory);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    /// `not_found` naming the reference. "host" is built in: its skeleton is made on first use.
    /// A name without tag means ":latest".
    Result<Rootfs> resolve(const std::string& reference);
    /// The same where the answer is in memory and still holds: looks at one file's time and waits
    /// for nobody, so that event loops may ask. Empty otherwise, also for what is not there.
    std::optional<Rootfs> resolve_known(const std::string& reference);
    Result<std::vector<ImageInfo>> list();
    /// An archive of any kind: OCI layout, docker save, or a root file system; plain, gzip or zstd.
    /// Whichever it is is found from its content. Errors name the entry and the rule. When the
    /// reference named another image, that one stays as "name@sha256:…": sandboxes may run on it.
    /// `cancelled`, with nothing left, soon after `stop` asks for it.
    Result<ImageInfo> import_archive(const std::string& reference, const ByteSource& source,
                                     const ImportLimits& limits = {}, std::stop_token stop = {});
    /// Takes in an image that `stage` puts together: pulled, or made here. The reference may be
    /// by digest. What it named before stays as with import_archive().
    Result<ImageInfo> add(const std::string& reference, const Stager& stage);
    /// `not_found`; `unsupported` for "host", which has no layers.
    Result<ImageDetails> inspect(const std::string& reference);
    /// Whether this digest of an image is that of its manifest, and not of its configuration or its
    /// layers, as where an archive had no manifest. Looks at one file's entry.
    bool has_manifest(const std::string& digest);
    /// Of the layer's diff id; false also when the index cannot be read.
    bool has_layer(const std::string& hex);
    /// Removes images that are not in use: those that lost their name to another, or with `all`
    /// every one.
    Result<PruneReport> prune(const std::function<bool(const std::string& digest)>& in_use,
                              bool all);
    /// Where images are put together before they are taken in: on the file system of the layers.
    [[nodiscard]] const std::filesystem::path& directory() const;
    /// Makes an image of one that is here: its layers and those that `wanted` adds, its config and
    /// the changes. `not_found`, `conflict` for "host", which has no layers. What the reference
    /// named before stays as with import_archive(). `cancelled` soon after `stop` asks for it.
    Result<ImageInfo> derive(const std::string& reference, const Derivation& wanted,
                             const std::stop_token& stop = {});
    /// `conflict` when `in_use` says so of its digest; `not_found`; "host" cannot be removed.
    Status remove(const std::string& reference,
                  const std::function<bool(const std::string& digest)>& in_use);
    /// Images of which `needed` says so cannot be removed either, whoever asks: snapshots stand on
    /// them. Set once, before the store is shared between threads.
    void protect(std::function<bool(const std::string& digest)> needed);

  private:
    struct State;
    explicit Store(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// Splits and checks "name[:tag]" or "name@sha256:…" (OCI distribution rules); `invalid_argument`
/// names the rule. Returns the canonical form: with a tag (":latest" when none is given), with the
/// digest, or "host".
Result<std::string> normalize_reference(std::string_view reference);

}  // namespace opensandbox::image
