#pragma once

#include "image/catalog.hpp"
#include "image/host_image.hpp"
#include "image/staged_image.hpp"
#include "image/staging.hpp"
#include "image/store.hpp"

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace opensandbox::image {

/// The documents of stored images, a file each, named by the image's digest.
class DocumentFiles {
  public:
    /// `store` is the directory of the store.
    explicit DocumentFiles(const std::filesystem::path& store) : directory_(store / "documents") {}

    [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
    /// Empty when there are none.
    [[nodiscard]] Result<std::optional<ImageDocuments>> read(const std::string& digest) const;
    /// Looks at one file's entry.
    [[nodiscard]] bool has(const std::string& digest) const;
    [[nodiscard]] Status write(const std::string& digest, const ImageDocuments& documents) const;
    /// Removes those of images that are not among `digests`.
    [[nodiscard]] Status keep_only(const std::set<std::string>& digests) const;

  private:
    [[nodiscard]] std::filesystem::path file(const std::string& digest) const;

    std::filesystem::path directory_;
};

/// What tells one index file from its successor without reading it.
struct FileIdentity {
    bool operator==(const FileIdentity&) const = default;
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t changed = 0;
};

/// The store's inside, for the files that its functions are spread over.
struct Store::State {
    explicit State(const std::filesystem::path& where)
        : directory(where), host(where), documents(where) {}

    [[nodiscard]] std::filesystem::path index() const { return directory / "index.json"; }
    [[nodiscard]] std::filesystem::path empty() const { return directory / "empty"; }
    [[nodiscard]] std::filesystem::path layer(const std::string& hex) const {
        return directory / "layers" / hex;
    }

    /// The index as it is on disk; another process may have replaced it.
    Result<std::shared_ptr<const Catalog>> catalog();
    /// Under the store's lock.
    Status save(const Catalog& changed) { return changed.save(index()); }
    Status remove_unnamed(const Catalog& known);
    /// Has an image staged and takes it in; again when a layer went meanwhile.
    Result<ImageInfo> take_in(const Reference& reference, const Staging& staging,
                              const Stager& stage);
    Result<ImageInfo> commit(const Reference& reference, const StagedImage& staged,
                             const Staging& staging, bool& stale);
    [[nodiscard]] ImageInfo describe(const Catalog& known, const std::string& reference) const;

    [[nodiscard]] Rootfs rootfs(const Catalog& known, const ImageRecord& image) const {
        Rootfs rootfs;
        rootfs.digest = image.digest;
        rootfs.config = image.config;
        for (const std::string& hex : known.effective_layers(image))
            rootfs.layers.push_back(layer(hex));
        if (rootfs.layers.empty()) rootfs.layers.push_back(empty());
        return rootfs;
    }

    std::filesystem::path directory;
    HostImage host;
    DocumentFiles documents;
    std::function<bool(const std::string& digest)> needed;
    std::mutex mutex;  ///< guards the two below
    std::shared_ptr<const Catalog> cached;
    FileIdentity cached_identity;
};

/// `not_found`.
Error unknown_image(const Reference& reference);

}  // namespace opensandbox::image
