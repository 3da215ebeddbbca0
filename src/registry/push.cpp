#include "base/digest.hpp"
#include "base/scope_exit.hpp"
#include "image/composition.hpp"
#include "image/layer_writer.hpp"
#include "image/staging.hpp"
#include "net/task.hpp"
#include "registry/blobs.hpp"
#include "registry/parallel.hpp"
#include "registry/transfer.hpp"

#include <map>

namespace opensandbox::registry {
namespace {

using Phase = LayerProgress::Status;
using KnownBlobs = std::vector<std::optional<image::KnownBlob>>;

class Push {
  public:
    Push(Session& session, Workplace place, std::shared_ptr<const image::ImageDetails> details,
         ProgressListener listener)
        : session_(session),
          place_(place),
          details_(std::move(details)),
          listener_(std::move(listener)) {}

    Awaitable<Result<PushedImage>> run();

  private:
    Awaitable<Status> prepare();
    Awaitable<Status> send_layer(std::size_t index, std::shared_ptr<bool> stop);
    /// True when the registry has the blob now without our sending it.
    Awaitable<Result<bool>> find_there(image::KnownBlob blob);
    Awaitable<Result<image::LayerBlob>> pack(std::size_t index);
    Awaitable<Status> send_document(std::string content);
    Awaitable<Result<PushedImage>> send_documents();
    void tell(const std::string& layer, Phase phase, std::uint64_t done, std::uint64_t total) {
        if (listener_) listener_(LayerProgress("sha256:" + layer, phase, done, total));
    }

    Session& session_;
    Workplace place_;
    std::shared_ptr<const image::ImageDetails> details_;
    ProgressListener listener_;
    std::shared_ptr<image::Staging> staging_;
    KnownBlobs known_;
    std::vector<std::size_t> distinct_;  ///< layers, each diff id once
    std::vector<image::SentLayer> sent_;
};

Awaitable<Status> Push::prepare() {
    struct Prepared {
        std::shared_ptr<image::Staging> staging;
        KnownBlobs known;
    };
    std::function<Result<Prepared>()> work = [&store = place_.store,
                                              details = details_]() -> Result<Prepared> {
        auto staging = image::Staging::create(store.directory());
        if (!staging) return staging.error();
        Prepared made;
        made.staging = std::make_shared<image::Staging>(std::move(*staging));
        made.known = image::find_known_blobs(store, *details);
        return made;
    };
    auto prepared = co_await net::run_blocking<Result<Prepared>>(place_.pool, std::move(work));
    if (!prepared) co_return prepared.error();
    staging_ = std::move(prepared->staging);
    known_ = std::move(prepared->known);
    sent_.resize(details_->layers.size());
    std::map<std::string, std::size_t> first;
    for (std::size_t i = 0; i < details_->layers.size(); ++i) {
        if (first.emplace(details_->layers[i].diff_id, i).second) distinct_.push_back(i);
    }
    co_return Status();
}

Awaitable<Result<bool>> Push::find_there(image::KnownBlob blob) {
    auto present = co_await has_blob(session_, blob.layer.hex);
    if (!present || *present) co_return present;
    const Location& to = session_.location();
    std::string prefix = to.registry + "/";
    if (!blob.source.starts_with(prefix) || blob.source == to.source()) co_return false;
    co_return co_await mount_blob(session_, blob.layer.hex, blob.source.substr(prefix.size()));
}

Awaitable<Result<image::LayerBlob>> Push::pack(std::size_t index) {
    using Packed = Result<image::LayerBlob>;
    const image::LayerInfo& layer = details_->layers[index];
    std::function<Packed()> work = [staging = staging_, layer, stop = session_.stop()] {
        return image::write_layer_blob(layer.path, staging->path() / layer.diff_id, stop);
    };
    co_return co_await net::run_blocking<Packed>(place_.pool, std::move(work));
}

Awaitable<Status> Push::send_layer(std::size_t index, std::shared_ptr<bool> stop) {
    const image::LayerInfo& layer = details_->layers[index];
    image::SentLayer& sent = sent_[index];
    if (known_[index]) {
        auto there = co_await find_there(*known_[index]);
        if (!there) co_return there.error();
        if (*there) {
            sent = known_[index]->layer;
            tell(layer.diff_id, Phase::present, sent.size, sent.size);
            co_return Status();
        }
    }
    tell(layer.diff_id, Phase::packing, 0, layer.size);
    auto blob = co_await pack(index);
    if (!blob) co_return blob.error().within("layer sha256:" + layer.diff_id);
    sent.diff_id = blob->diff_id;
    sent.hex = blob->hex;
    sent.size = blob->size;
    sent.media_type = image::kLayerMediaType;
    auto present = co_await has_blob(session_, sent.hex);
    if (!present) co_return present.error();
    if (!*present) {
        UploadRequest upload;
        upload.hex = sent.hex;
        upload.size = sent.size;
        upload.file = staging_->path() / layer.diff_id;
        upload.cancelled = std::move(stop);
        upload.on_progress = [this, &layer, size = sent.size](std::uint64_t done) {
            tell(layer.diff_id, Phase::uploading, done, size);
        };
        auto uploaded = co_await upload_blob(session_, place_.pool, std::move(upload));
        if (!uploaded) co_return uploaded;
    }
    tell(layer.diff_id, *present ? Phase::present : Phase::done, sent.size, sent.size);
    co_return Status();
}

Awaitable<Status> Push::send_document(std::string content) {
    std::string hex = sha256_hex(content);
    auto present = co_await has_blob(session_, hex);
    if (!present) co_return present.error();
    if (*present) co_return Status();
    UploadRequest upload;
    upload.hex = hex;
    upload.size = content.size();
    upload.content = std::move(content);
    co_return co_await upload_blob(session_, place_.pool, std::move(upload));
}

Awaitable<Result<PushedImage>> Push::send_documents() {
    auto made = image::compose(*details_, sent_);
    if (!made) co_return made.error();
    auto config = co_await send_document(made->config);
    if (!config) co_return config.error().within("config");
    const Location& to = session_.location();
    Call call("PUT", session_.path("manifests/" + to.reference));
    call.fields.set("Content-Type", made->media_type);
    call.content = made->manifest;
    auto response = co_await session_.send(std::move(call));
    if (!response) co_return response.error().within("manifest");
    PushedImage pushed;
    pushed.reference = to.source() + ":" + to.reference;
    pushed.digest = "sha256:" + sha256_hex(made->manifest);
    pushed.size = made->config.size();
    for (std::size_t i : distinct_)
        pushed.size += sent_[i].size;
    co_return pushed;
}

Awaitable<Result<PushedImage>> Push::run() {
    auto prepared = co_await prepare();
    if (!prepared) co_return prepared.error();
    // Removing files may wait for the disk.
    ScopeExit discard([this] { asio::post(place_.pool, [staging = std::move(staging_)] {}); });
    for (std::size_t i : distinct_)
        tell(details_->layers[i].diff_id, Phase::waiting, 0, details_->layers[i].size);
    auto stop = std::make_shared<bool>(false);
    const auto end = [stop] { *stop = true; };
    std::stop_callback unwanted(session_.stop(), end);
    std::function<Awaitable<Status>(std::size_t)> job = [&](std::size_t i) {
        return send_layer(distinct_[i], stop);
    };
    auto layers = co_await run_in_parallel(session_.executor(), distinct_.size(),
                                           session_.options().transfers, std::move(job), stop);
    if (!layers) co_return layers.error();
    if (session_.stop().stop_requested()) co_return unwanted_transfer();
    // A layer that comes twice was sent once.
    for (std::size_t i = 0; i < sent_.size(); ++i) {
        for (std::size_t j : distinct_) {
            if (details_->layers[j].diff_id == details_->layers[i].diff_id) sent_[i] = sent_[j];
        }
    }
    co_return co_await send_documents();
}

}  // namespace

Awaitable<Result<PushedImage>> push_image(Session& session, Workplace place,
                                          std::shared_ptr<const image::ImageDetails> details,
                                          ProgressListener listener) {
    Push push(session, place, std::move(details), std::move(listener));
    co_return co_await push.run();
}

}  // namespace opensandbox::registry
