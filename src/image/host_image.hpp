#pragma once

#include "image/host_skeleton.hpp"
#include "image/store.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace opensandbox::image {

/// The built-in image "host": a skeleton root below the host's own /usr.
///
/// Skeletons live in `<store>/host/<digest>/root` and never change: sandboxes stand on them. When
/// the host's /etc changes, the next sandbox gets another one. They are not forced to the disk,
/// which would take longer than making them; those of another boot are made again.
class HostImage {
  public:
    explicit HostImage(std::filesystem::path store, std::filesystem::path host_root = "/")
        : store_(std::move(store)), host_root_(std::move(host_root)) {}

    /// Makes the skeleton when there is none of the host's present state. Whether that changed is
    /// looked at once in `kCheckInterval`.
    Result<Rootfs> rootfs();
    /// The same, if that is known and needs no looking now; never waits.
    std::optional<Rootfs> known_rootfs();
    /// For lists; digest and size are unknown (empty, 0) before the first use.
    ImageInfo describe();
    /// Removes skeletons of former states that no sandbox uses.
    void prune(const std::function<bool(const std::string& digest)>& in_use);

    static constexpr std::chrono::seconds kCheckInterval{10};

  private:
    struct Current {
        std::string fingerprint;
        std::string hex;
        std::uint64_t size = 0;
        Timestamp created_at{};
    };
    [[nodiscard]] std::filesystem::path directory() const { return store_ / "host"; }
    Status renew();
    [[nodiscard]] Rootfs present() const;
    std::optional<Current> load(const std::string& hex) const;
    std::optional<Current> find(const std::string& fingerprint) const;
    Result<Current> make(const HostSurvey& survey, const std::string& fingerprint);
    Result<Current> publish(const Skeleton& skeleton, const std::string& fingerprint,
                            const std::filesystem::path& staged);

    std::filesystem::path store_;
    std::filesystem::path host_root_;
    std::mutex mutex_;  ///< guards what follows
    std::optional<Current> current_;
    HostSurvey survey_;  ///< what `current_` was made from
    std::chrono::steady_clock::time_point checked_{};
};

}  // namespace opensandbox::image
