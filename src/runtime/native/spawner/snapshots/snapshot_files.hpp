#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"
#include "runtime/native/records/sandbox_description.hpp"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// Image layers and those of snapshots below one sandbox: the kernel takes 500, each costs time.
inline constexpr std::size_t kMaxLowers = 400;

/// What is written down about a snapshot.
struct SnapshotRecord {
    std::string id;  ///< UUID, also the name of its own layer
    Timestamp created_at{};
    std::string boot;  ///< of the kernel that made it
    ImageOrigin image;
    std::vector<std::string> layers;  ///< its own, then those of the snapshots below it
    /// What guarded its source at that moment, without token; holds for what starts from it.
    EgressTerms egress;
    /// Set when it is no snapshot but what copies of this sandbox start from: only until they are
    /// made, and never longer than the spawner and the server live.
    std::optional<SandboxDescription> source;
};

std::string format_snapshot(const SnapshotRecord& record);
/// invalid_argument names the member.
Result<SnapshotRecord> parse_snapshot(std::string_view text);

/// `<state>/snapshots`: a record `<id>.json` for each snapshot, the layers `layers/<id>` that
/// records and sandboxes stand on, what is being made in `staging`, and what is going in `gone`. A
/// snapshot exists from the moment its record does. All functions block.
class SnapshotFiles {
  public:
    explicit SnapshotFiles(const std::filesystem::path& state_directory)
        : root_(state_directory / "snapshots") {}

    /// Makes the directories.
    Status prepare() const;
    /// `not_found` when there is no such snapshot.
    [[nodiscard]] Result<SnapshotRecord> read(const std::string& id) const;
    /// Every whole snapshot; records that are none are logged and left out.
    [[nodiscard]] Result<std::vector<SnapshotRecord>> read_all() const;
    /// Names of all layers that are there.
    [[nodiscard]] std::set<std::string> layers() const;

    /// The directory of a layer; "u" in it is its root, "u2", if any, goes over /usr.
    [[nodiscard]] std::filesystem::path layer(const std::string& name) const;
    [[nodiscard]] std::filesystem::path staging(const std::string& id) const;

    /// Copies the writable layers in `slot` and makes them the snapshot of `record`.
    Status make(const SnapshotRecord& record, const std::filesystem::path& slot) const;
    /// Forces it to the disk. Until then it counts only for this boot.
    void sync(const std::string& id) const;
    [[nodiscard]] bool synced(const std::string& id) const;
    /// The name goes, the layer stays.
    Status remove_record(const std::string& id) const;
    /// Moves a layer out of the way, or what was left half made: all of it, or that of one
    /// snapshot. remove_gone() takes its time.
    Status discard_layer(const std::string& name) const;
    Status discard_staged() const;
    Status discard_staged(const std::string& id) const;
    /// Removes what was discarded.
    Status remove_gone() const;
    [[nodiscard]] bool has_gone() const;

  private:
    [[nodiscard]] std::filesystem::path record(const std::string& id) const;
    Status discard(const std::filesystem::path& path) const;
    std::filesystem::path root_;
};

}  // namespace opensandbox::runtime::native
