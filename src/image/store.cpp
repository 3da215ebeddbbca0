#include "image/store.hpp"

#include "base/log.hpp"
#include "base/remove_tree.hpp"
#include "image/derivation.hpp"
#include "image/import.hpp"
#include "image/store_state.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::image {
namespace fs = std::filesystem;
namespace {

Status make_directory(const fs::path& path, mode_t mode) {
    std::error_code ec;
    if (path.has_parent_path()) fs::create_directories(path.parent_path(), ec);
    if (ec) return Error::from_errno(ec.value(), "make " + path.parent_path().string());
    if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return {};
    return Error::from_errno(errno, "make " + path.string());
}

FileIdentity identity_of(const fs::path& file) {
    struct stat status{};
    if (::stat(file.c_str(), &status) != 0) return {};
    return {status.st_ino, status.st_size,
            std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec};
}

/// Bytes must be on the disk before the index names them.
Status sync_file_system(const fs::path& directory) {
    UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd && ::syncfs(fd.get()) == 0) return {};
    return Error::from_errno(errno, "write " + directory.string() + " to the disk");
}

/// What an image that is made or imported can be called.
Result<Reference> parse_new_name(const std::string& text) {
    auto reference = parse_reference(text);
    if (!reference) return reference;
    if (reference->is_host()) {
        return Error(ErrorCode::conflict, "image \"host\" is built in and cannot be replaced");
    }
    if (!reference->digest.empty()) {
        return Error(
            ErrorCode::invalid_argument,
            "image " + in_quotes(text) + ": a new image must be named by tag, not by digest");
    }
    return reference;
}

}  // namespace

Error unknown_image(const Reference& reference) {
    return {ErrorCode::not_found, "image \"" + reference.text() + "\" is not in the store"};
}

Result<std::shared_ptr<const Catalog>> Store::State::catalog() {
    std::lock_guard guard(mutex);
    FileIdentity identity = identity_of(index());
    if (cached && identity == cached_identity) return cached;
    auto loaded = Catalog::load(index());
    if (!loaded) return loaded.error();
    cached = std::make_shared<const Catalog>(std::move(*loaded));
    cached_identity = identity;
    return cached;
}

/// Layers and documents that a crash left between their move and the index, or between the index
/// and their end.
Status Store::State::remove_unnamed(const Catalog& known) {
    std::error_code ec;
    std::vector<fs::path> stray;
    for (fs::directory_iterator it(directory / "layers", ec), end; !ec && it != end;
         it.increment(ec)) {
        if (!known.layers.contains(it->path().filename().string())) stray.push_back(it->path());
    }
    if (ec) return Error::from_errno(ec.value(), "list " + (directory / "layers").string());
    for (const fs::path& path : stray) {
        if (auto status = remove_tree(path); !status) return status;
    }
    return documents.keep_only(known.digests());
}

ImageInfo Store::State::describe(const Catalog& known, const std::string& reference) const {
    const ImageRecord& image = known.images.find(reference)->second;
    ImageInfo info;
    info.reference = reference;
    info.digest = image.digest;
    info.size = known.size_of(image);
    info.created_at = image.created_at;
    return info;
}

Result<ImageInfo> Store::State::commit(const Reference& reference, const StagedImage& staged,
                                       const Staging& staging, bool& stale) {
    if (auto ok = sync_file_system(directory); !ok) return ok.error();
    auto lock = StoreLock::acquire(directory);
    if (!lock) return lock.error();
    auto current = catalog();
    if (!current) return current.error();
    Catalog changed = **current;
    for (const std::string& hex : staged.image.layers) {
        if (!staged.layers.contains(hex) && !changed.layers.contains(hex)) {
            stale = true;
            return Error(ErrorCode::conflict,
                         "layer sha256:" + hex + " was removed during the import; import again");
        }
    }
    for (const auto& [hex, record] : staged.layers) {
        if (changed.layers.contains(hex)) continue;  // another import was faster
        fs::path from = staging.path() / hex;
        if (::rename(from.c_str(), layer(hex).c_str()) != 0) {
            return Error::from_errno(errno, "rename " + from.string());
        }
        changed.layers.emplace(hex, record);
    }
    changed.assign(reference, staged.image);
    Status ok =
        staged.documents ? documents.write(staged.image.digest, *staged.documents) : Status();
    if (ok) ok = save(changed);
    if (!ok) {
        // The index does not name them, so nothing else may find them.
        for (const auto& [hex, record] : staged.layers) {
            if ((*current)->layers.contains(hex)) continue;
            ::rename(layer(hex).c_str(), (staging.path() / hex).c_str());
        }
        return ok.error();
    }
    return describe(changed, reference.text());
}

Result<ImageInfo> Store::State::take_in(const Reference& reference, const Staging& staging,
                                        const Stager& stage) {
    for (int attempt = 0;; ++attempt) {
        auto known = catalog();
        if (!known) return known.error();
        auto staged = stage(staging.path(),
                            [&](const std::string& hex) { return (*known)->layers.contains(hex); });
        if (!staged) return staged.error();
        bool stale = false;
        auto info = commit(reference, *staged, staging, stale);
        if (info || !stale || attempt == 3) return info;
        for (const auto& [hex, record] : staged->layers) {
            if (auto ok = remove_tree(staging.path() / hex); !ok) return ok.error();
        }
    }
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(const fs::path& directory) {
    // Private: layers hold setuid programs of root, which other users of the host must not reach.
    if (auto ok = make_directory(directory, 0700); !ok) return ok.error();
    for (const char* name : {"layers", "staging", "host", "documents"}) {
        if (auto ok = make_directory(directory / name, 0700); !ok) return ok.error();
    }
    if (auto ok = make_directory(directory / "empty", 0755); !ok) return ok.error();
    auto state = std::make_unique<State>(directory);
    auto lock = StoreLock::acquire(directory);
    if (!lock) return lock.error();
    auto known = state->catalog();
    if (!known) return known.error();
    std::error_code unreadable;
    if (!fs::exists(state->index(), unreadable)) {
        if (auto ok = (*known)->save(state->index()); !ok) return ok.error();
    }
    if (auto ok = Staging::remove_abandoned(directory); !ok) return ok.error();
    if (auto ok = state->remove_unnamed(**known); !ok) return ok.error();
    return std::unique_ptr<Store>(new Store(std::move(state)));
}

Result<Rootfs> Store::resolve(const std::string& text) {
    auto reference = parse_reference(text);
    if (!reference) return reference.error();
    if (reference->is_host()) return state_->host.rootfs();
    auto known = state_->catalog();
    if (!known) return known.error();
    const ImageRecord* image = (*known)->find(*reference);
    if (!image) return unknown_image(*reference);
    return state_->rootfs(**known, *image);
}

std::optional<Rootfs> Store::resolve_known(const std::string& text) {
    auto reference = parse_reference(text);
    if (!reference) return std::nullopt;
    if (reference->is_host()) return state_->host.known_rootfs();
    std::unique_lock guard(state_->mutex, std::try_to_lock);
    if (!guard.owns_lock() || !state_->cached) return std::nullopt;
    if (identity_of(state_->index()) != state_->cached_identity) return std::nullopt;
    const ImageRecord* image = state_->cached->find(*reference);
    if (!image) return std::nullopt;
    return state_->rootfs(*state_->cached, *image);
}

Result<std::vector<ImageInfo>> Store::list() {
    auto known = state_->catalog();
    if (!known) return known.error();
    std::vector<ImageInfo> images = {state_->host.describe()};
    for (const auto& [reference, image] : (*known)->images) {
        images.push_back(state_->describe(**known, reference));
    }
    return images;
}

Result<ImageInfo> Store::import_archive(const std::string& text, const ByteSource& source,
                                        const ImportLimits& limits, std::stop_token stop) {
    auto reference = parse_new_name(text);
    if (!reference) return reference.error();
    auto staging = Staging::create(state_->directory);
    if (!staging) return staging.error();
    Import import(*reference, limits, *staging, std::move(stop));
    if (auto ok = import.read(source); !ok) return ok.error();
    return state_->take_in(*reference, *staging, [&](const fs::path&, const HasLayer& has_layer) {
        return import.stage(has_layer);
    });
}

Result<ImageInfo> Store::derive(const std::string& text, const Derivation& wanted,
                                const std::stop_token& stop) {
    auto reference = parse_new_name(text);
    if (!reference) return reference.error();
    if (auto ok = check_config_change(wanted.change); !ok) return ok.error();
    auto known = state_->catalog();
    if (!known) return known.error();
    auto base = find_base(**known, wanted.base);
    if (!base) return base.error();
    auto staging = Staging::create(state_->directory);
    if (!staging) return staging.error();
    auto stage = [&](const fs::path& directory, const HasLayer&) -> Result<StagedImage> {
        auto made = stage_layers(wanted.layers, directory, stop);
        if (!made) return made.error();
        auto image = derive_record(**base, made->order, wanted.change);
        if (!image) return image.error();
        StagedImage staged;
        staged.image = std::move(*image);
        staged.image.replaced = false;
        staged.layers = std::move(made->records);
        return staged;
    };
    return state_->take_in(*reference, *staging, stage);
}

bool Store::has_manifest(const std::string& digest) {
    return state_->documents.has(digest);
}

void Store::protect(std::function<bool(const std::string& digest)> needed) {
    state_->needed = std::move(needed);
}

Status Store::remove(const std::string& text,
                     const std::function<bool(const std::string& digest)>& in_use) {
    auto reference = parse_reference(text);
    if (!reference) return reference.error();
    if (reference->is_host()) {
        return Error(ErrorCode::conflict, "image \"host\" is built in and cannot be removed");
    }
    auto trash = Staging::create(state_->directory);
    if (!trash) return trash.error();
    auto lock = StoreLock::acquire(state_->directory);
    if (!lock) return lock.error();
    auto current = state_->catalog();
    if (!current) return current.error();
    std::string key = (*current)->key_of(*reference);
    if (key.empty()) return unknown_image(*reference);
    const std::string& digest = (*current)->images.find(key)->second.digest;
    if (in_use && in_use(digest)) {
        return Error(ErrorCode::conflict, "image \"" + key + "\" is in use by a sandbox");
    }
    if (state_->needed && state_->needed(digest)) {
        return Error(ErrorCode::conflict,
                     "image \"" + key + "\" is in use by a snapshot, or a sandbox made from one");
    }
    Catalog changed = **current;
    changed.images.erase(key);
    std::vector<std::string> unused = changed.unused_layers();
    for (const std::string& hex : unused)
        changed.layers.erase(hex);
    if (auto ok = state_->save(changed); !ok) return ok;
    if (auto ok = state_->documents.keep_only(changed.digests()); !ok) {
        log::warn("documents of an image are left", {{"error", ok.error().message()}});
    }
    for (const std::string& hex : unused) {
        // What cannot be moved now goes when the store is opened next.
        if (::rename(state_->layer(hex).c_str(), (trash->path() / hex).c_str()) == 0) continue;
        log::warn("a layer could not be removed", {{"layer", hex}, {"errno", errno}});
    }
    if (in_use) {
        state_->host.prune([&](const std::string& hex) {
            return in_use(hex) || (state_->needed && state_->needed(hex));
        });
    }
    return {};
}

}  // namespace opensandbox::image
