#include "image/host_image.hpp"

#include "base/digest.hpp"
#include "base/log.hpp"
#include "base/remove_tree.hpp"
#include "image/input_stream.hpp"
#include "image/reference.hpp"
#include "image/staging.hpp"
#include "json/document.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>

namespace opensandbox::image {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";
constexpr std::string_view kPathOfALogin =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Another one after every start of the machine.
std::string boot_id() {
    auto id = read_file("/proc/sys/kernel/random/boot_id");
    return id ? *id : std::string();
}

}  // namespace

Result<Rootfs> HostImage::rootfs() {
    std::lock_guard guard(mutex_);
    if (auto ok = renew(); !ok) return ok.error();
    return present();
}

std::optional<Rootfs> HostImage::known_rootfs() {
    std::unique_lock guard(mutex_, std::try_to_lock);
    if (!guard.owns_lock() || !current_) return std::nullopt;
    if (std::chrono::steady_clock::now() - checked_ >= kCheckInterval) return std::nullopt;
    return present();
}

Rootfs HostImage::present() const {
    Rootfs rootfs;
    rootfs.digest = std::string(kDigestPrefix) + current_->hex;
    rootfs.layers = {directory() / current_->hex / "root"};
    rootfs.usr = "/usr";
    rootfs.config.env = {{"PATH", std::string(kPathOfALogin)}, {"LANG", "C.UTF-8"}};
    return rootfs;
}

ImageInfo HostImage::describe() {
    ImageInfo info;
    info.reference = kHostReference;
    info.built_in = true;
    std::lock_guard guard(mutex_);
    std::optional<Current> known = current_;
    if (!known) {
        if (auto survey = survey_host(host_root_)) known = find(survey->fingerprint());
    }
    if (!known) return info;
    info.digest = std::string(kDigestPrefix) + known->hex;
    info.size = known->size;
    info.created_at = known->created_at;
    return info;
}

Status HostImage::renew() {
    auto present = std::chrono::steady_clock::now();
    if (current_ && present - checked_ < kCheckInterval) return {};
    if (!current_ || !survey_.still_holds(host_root_)) {
        auto survey = survey_host(host_root_);
        if (!survey) return survey.error();
        std::string fingerprint = survey->fingerprint();
        if (!current_ || current_->fingerprint != fingerprint) {
            std::optional<Current> found = find(fingerprint);
            if (!found) {
                auto made = make(*survey, fingerprint);
                if (!made) return made.error();
                found = std::move(*made);
            }
            current_ = std::move(found);
        }
        survey_ = std::move(*survey);
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
    auto boot = json::get_string(about, "boot");
    auto size = json::get_integer(about, "size");
    auto created = json::get_integer(about, "created_at");
    if (!fingerprint || !*fingerprint || !size || !*size || !created || !*created) {
        return std::nullopt;
    }
    if (!boot || *boot != boot_id()) return std::nullopt;
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

Result<HostImage::Current> HostImage::make(const HostSurvey& survey,
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
    auto skeleton = build_skeleton(host_root_, survey, staged / "root");
    if (!skeleton) return skeleton.error().within("image \"host\"");
    return publish(*skeleton, fingerprint, staged);
}

Result<HostImage::Current> HostImage::publish(const Skeleton& skeleton,
                                              const std::string& fingerprint,
                                              const fs::path& staged) {
    auto lock = StoreLock::acquire(store_);
    if (!lock) return lock.error();
    fs::path place = directory() / skeleton.hex;
    auto former = load(skeleton.hex);  // touched but equal: only the fingerprint is new
    Current made;
    made.fingerprint = fingerprint;
    made.hex = skeleton.hex;
    made.size = skeleton.size;
    made.created_at = former ? former->created_at : now();
    json::object about;
    about["fingerprint"] = made.fingerprint;
    about["boot"] = boot_id();
    about["size"] = made.size;
    about["created_at"] = made.created_at.time_since_epoch().count();
    std::string text = json::serialize(about);
    fs::path file = staged / "about.json";
    UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return Error::from_errno(errno, "make " + file.string());
    if (auto ok = write_all(fd.get(), text); !ok) return ok.error().within(file.string());
    if (!former) {
        // One of another boot may be damaged, and nothing stands on it any more.
        if (auto ok = remove_tree(place); !ok) return ok.error();
    }
    fs::path from = former ? file : staged, to = former ? place / "about.json" : place;
    if (::rename(from.c_str(), to.c_str()) != 0) {
        return Error::from_errno(errno, "rename " + from.string());
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
        if (!present && !in_use(std::string(kDigestPrefix) + hex)) former.push_back(it->path());
    }
    for (const fs::path& path : former) {
        auto status = remove_tree(path);
        if (!status)
            log::warn("a skeleton could not be removed", {{"error", status.error().message()}});
    }
}

}  // namespace opensandbox::image
