#include "base/scope_exit.hpp"
#include "image/staged_image.hpp"
#include "image/staging.hpp"
#include "net/task.hpp"
#include "registry/blobs.hpp"
#include "registry/parallel.hpp"
#include "registry/transfer.hpp"

#include <set>

namespace opensandbox::registry {
namespace {

using Phase = LayerProgress::Status;
using Staged = Result<std::shared_ptr<image::Staging>>;

/// How often a pull begins anew when layers of the store vanish under it.
constexpr int kAttempts = 3;

class Pull {
  public:
    Pull(Session& session, Workplace place, std::string reference, ProgressListener listener)
        : session_(session),
          place_(place),
          reference_(std::move(reference)),
          listener_(std::move(listener)) {}

    Awaitable<Result<image::ImageInfo>> run();

  private:
    /// Layers and what is to be fetched of them; reads the store's index.
    Awaitable<Result<std::vector<std::size_t>>> plan();
    Awaitable<Status> download(std::size_t layer, std::shared_ptr<bool> stop);
    Awaitable<Result<image::ImageInfo>> attempt();
    Awaitable<Result<image::ImageInfo>> look();
    Awaitable<Result<image::ImageInfo>> take_in();
    void tell(const image::PulledLayer& layer, Phase status, std::uint64_t done) {
        if (listener_) {
            listener_(LayerProgress("sha256:" + layer.hex, status, done, layer.size));
        }
    }

    Session& session_;
    Workplace place_;
    std::string reference_;
    ProgressListener listener_;
    RemoteImage remote_;
    std::shared_ptr<image::Staging> staging_;
    std::shared_ptr<image::PulledImage> image_;  ///< also of the work on the pool
};

Awaitable<Result<std::vector<std::size_t>>> Pull::plan() {
    image_ = std::make_shared<image::PulledImage>();
    image_->digest = remote_.digest;
    image_->config = remote_.config;
    image_->documents = remote_.documents;
    using Planned = Result<std::vector<std::size_t>>;
    std::function<Staged()> make = [&store = place_.store]() -> Staged {
        auto staging = image::Staging::create(store.directory());
        if (!staging) return staging.error();
        return std::make_shared<image::Staging>(std::move(*staging));
    };
    auto staging = co_await net::run_blocking<Staged>(place_.pool, std::move(make));
    if (!staging) co_return Planned(staging.error());
    staging_ = std::move(*staging);
    std::vector<std::size_t> missing;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < remote_.manifest.layers.size(); ++i) {
        const image::Descriptor& blob = remote_.manifest.layers[i];
        image::PulledLayer layer;
        layer.diff_id = remote_.config.diff_ids[i];
        layer.hex = blob.hex;
        layer.size = blob.size;
        if (layer.size > session_.options().limits.max_unpacked) {
            co_return Planned(Error(ErrorCode::too_large,
                                    "layer sha256:" + blob.hex + ": larger than " +
                                        std::to_string(session_.options().limits.max_unpacked) +
                                        " bytes"));
        }
        bool present = place_.store.has_layer(layer.diff_id);
        if (!present && seen.insert(layer.diff_id).second) {
            layer.file = staging_->path() / (layer.diff_id + ".blob");
            missing.push_back(i);
        }
        tell(layer, present ? Phase::present : Phase::waiting, present ? layer.size : 0);
        image_->layers.push_back(std::move(layer));
    }
    co_return Planned(std::move(missing));
}

Awaitable<Status> Pull::download(std::size_t index, std::shared_ptr<bool> stop) {
    const image::PulledLayer& layer = image_->layers[index];
    BlobRequest request;
    request.hex = layer.hex;
    request.size = layer.size;
    request.file = layer.file;
    request.cancelled = std::move(stop);
    request.on_progress = [this, &layer](std::uint64_t done) {
        tell(layer, Phase::downloading, done);
    };
    tell(layer, Phase::downloading, 0);
    auto done = co_await download_blob(session_, place_.pool, std::move(request));
    if (done) tell(layer, Phase::downloaded, layer.size);
    co_return done;
}

/// What the reference names now.
Awaitable<Result<image::ImageInfo>> Pull::look() {
    using Found = Result<image::ImageInfo>;
    std::function<Found()> work = [&store = place_.store, reference = reference_]() -> Found {
        auto details = store.inspect(reference);
        if (!details) return details.error();
        return std::move(details->info);
    };
    co_return co_await net::run_blocking<Found>(place_.pool, std::move(work));
}

/// Unpacks and names, on the pool.
Awaitable<Result<image::ImageInfo>> Pull::take_in() {
    using Taken = Result<image::ImageInfo>;
    std::function<Taken()> work = [&store = place_.store, stop = session_.stop(), pulled = image_,
                                   staging = staging_, reference = reference_,
                                   limits = session_.options().limits] {
        return store.add(reference, [&](const std::filesystem::path& directory,
                                        const image::HasLayer& has_layer) {
            return image::stage_pulled(*pulled, limits, directory, has_layer, stop);
        });
    };
    co_return co_await net::run_blocking<Taken>(place_.pool, std::move(work));
}

Awaitable<Result<image::ImageInfo>> Pull::attempt() {
    auto missing = co_await plan();
    // Removing files may wait for the disk.
    ScopeExit discard([this] { asio::post(place_.pool, [staging = std::move(staging_)] {}); });
    if (!missing) co_return missing.error();
    auto stop = std::make_shared<bool>(false);
    const auto end = [stop] { *stop = true; };
    std::stop_callback unwanted(session_.stop(), end);
    std::function<Awaitable<Status>(std::size_t)> job = [&](std::size_t i) {
        return download((*missing)[i], stop);
    };
    auto fetched = co_await run_in_parallel(session_.executor(), missing->size(),
                                            session_.options().transfers, std::move(job), stop);
    if (!fetched) co_return fetched.error();
    if (session_.stop().stop_requested()) co_return unwanted_transfer();
    for (std::size_t i : *missing)
        tell(image_->layers[i], Phase::unpacking, image_->layers[i].size);
    auto taken = co_await take_in();
    if (!taken) co_return taken;
    for (std::size_t i : *missing)
        tell(image_->layers[i], Phase::done, image_->layers[i].size);
    co_return taken;
}

Awaitable<Result<image::ImageInfo>> Pull::run() {
    auto remote = co_await fetch_image(session_);
    if (!remote) co_return remote.error();
    remote_ = std::move(*remote);
    auto present = co_await look();
    if (present && present->digest == remote_.digest) co_return present;
    for (int number = 1;; ++number) {
        auto taken = co_await attempt();
        bool again = !taken && taken.error().code() == ErrorCode::conflict && number < kAttempts;
        if (!again) co_return taken;
    }
}

}  // namespace

Awaitable<Result<image::ImageInfo>> pull_image(Session& session, Workplace place,
                                               std::string reference, ProgressListener listener) {
    Pull pull(session, place, std::move(reference), std::move(listener));
    co_return co_await pull.run();
}

}  // namespace opensandbox::registry
