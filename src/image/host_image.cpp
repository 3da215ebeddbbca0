#include "image/host_image.hpp"

#include "base/log.hpp"
#include "image/digest.hpp"
#include "image/reference.hpp"
#include "image/remove_tree.hpp"
#include "image/staging.hpp"
#include "json/document.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

namespace opensandbox::image {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view digest_prefix = "sha256:";
constexpr std::string_view path_of_a_login =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace

Result<Rootfs> HostImage::rootfs() {
    std::lock_guard guard(mutex_);
    if (auto ok = renew(); !ok) return ok.error();
    Rootfs rootfs;
    rootfs.digest = std::string(digest_prefix) + current_->hex;
    rootfs.layers = {directory() / current_->hex / "root"};
    rootfs.usr = "/usr";
    rootfs.config.env = {{"PATH", std::string(path_of_a_login)}, {"LANG", "C.UTF-8"}};
    return rootfs;
}

ImageInfo HostImage::describe() {
    ImageInfo info;
    info.reference = host_reference;
    info.built_in = true;
    std::lock_guard guard(mutex_);
    std::optional<Current> known = current_;
    if (!known) {
        if (auto sources = survey_host(host_root_)) known = find(fingerprint_of(*sources));
    }
    if (!known) return info;
    info.digest = std::string(digest_prefix) + known->hex;
    info.size = known->size;
    info.created_at = known->created_at;
    return info;
}

Status HostImage::renew() {
    auto present = std::chrono::steady_clock::now();
    if (current_ && present - checked_ < check_interval) return {};
    auto sources = survey_host(host_root_);
    if (!sources) return sources.error();
    std::string fingerprint = fingerprint_of(*sources);
    if (!current_ || current_->fingerprint != fingerprint) {
        std::optional<Current> found = find(fingerprint);
        if (!found) {
            auto made = make(*sources, fingerprint);
            if (!made) return made.error();
            found = std::move(*made);
        }
        current_ = std::move(found);
    }
    checked_ = present;
    return {};
}

std::optional<HostImage::Current> HostImage::load(const std::string& hex) const {
    auto text = read_file(directory() / hex / "about.json");
    if (!text) return std::nullopt;
    auto document = json::parse(*text);
    if (!document || !document->is_object()) return std::nullopt;
    const json::object& about = document->get_object();
    auto fingerprint = json::get_string(about, "fingerprint");
    auto size = json::get_integer(about, "size");
    auto created = json::get_integer(about, "created_at");
    if (!fingerprint || !*fingerprint || !size || !*size || !created || !*created) {
        return std::nullopt;
    }
    Current known;
    known.fingerprint = **fingerprint;
    known.hex = hex;
    known.size = static_cast<std::uint64_t>(**size);
    known.created_at = Timestamp(std::chrono::microseconds(**created));
    return known;
}

std::optional<HostImage::Current> HostImage::find(const std::string& fingerprint) const {
    std::error_code ec;
    for (fs::directory_iterator it(directory(), ec), end; !ec && it != end; it.increment(ec)) {
        auto known = load(it->path().filename().string());
        if (known && known->fingerprint == fingerprint) return known;
    }
    return std::nullopt;
}

Result<HostImage::Current> HostImage::make(const std::vector<HostSource>& sources,
                                           const std::string& fingerprint) {
    auto staging = Staging::create(store_);
    if (!staging) return staging.error();
    fs::path staged = staging->path() / "skeleton";
    for (const fs::path& path : {staged, staged / "root"}) {
        if (::mkdir(path.c_str(), 0755) != 0 || ::chmod(path.c_str(), 0755) != 0) {
            int number = errno;
            return Error::from_errno(number, "make " + path.string());
        }
    }
    auto skeleton = build_skeleton(host_root_, sources, staged / "root");
    if (!skeleton) return skeleton.error().within("image \"host\"");
    Current made;
    made.fingerprint = fingerprint;
    made.hex = skeleton->hex;
    made.size = skeleton->size;
    made.created_at = now();
    auto lock = StoreLock::acquire(store_);
    if (!lock) return lock.error();
    fs::path place = directory() / made.hex;
    auto former = load(made.hex);  // touched but equal: only the fingerprint is new
    if (former) made.created_at = former->created_at;
    json::object about;
    about["fingerprint"] = made.fingerprint;
    about["size"] = made.size;
    about["created_at"] = made.created_at.time_since_epoch().count();
    fs::path target = former ? place : staged;
    if (auto ok = write_file_atomically(target / "about.json", json::serialize(about)); !ok) {
        return ok.error();
    }
    if (!former) {
        if (auto ok = remove_tree(place); !ok) return ok.error();  // a damaged one, without about
        if (::rename(staged.c_str(), place.c_str()) != 0) {
            return Error::from_errno(errno, "rename " + staged.string());
        }
    }
    return made;
}

void HostImage::prune(const std::function<bool(const std::string& digest)>& in_use) {
    std::lock_guard guard(mutex_);
    std::error_code ec;
    std::vector<fs::path> former;
    for (fs::directory_iterator it(directory(), ec), end; !ec && it != end; it.increment(ec)) {
        std::string hex = it->path().filename().string();
        bool present = current_ && current_->hex == hex;
        if (!present && !in_use(std::string(digest_prefix) + hex)) former.push_back(it->path());
    }
    for (const fs::path& path : former) {
        auto status = remove_tree(path);
        if (!status)
            log::warn("a skeleton could not be removed", {{"error", status.error().message()}});
    }
}

}  // namespace opensandbox::image
