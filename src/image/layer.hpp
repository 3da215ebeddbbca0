#pragma once

#include "image/archive_reader.hpp"
#include "image/budget.hpp"
#include "image/layer_tree.hpp"

#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::image {

/// What one unpacked layer is.
struct LayerRecord {
    std::uint64_t size = 0;     ///< bytes of its files, holes included
    std::uint64_t entries = 0;  ///< 0: the layer changes nothing
    bool opaque = false;        ///< its root hides everything below
};

/// Unpacks the entries of one layer (or of a root file system, which is one layer) below a
/// directory, as overlayfs reads it:
/// - ids as in the archive and below 65536, modes with setuid bits, times, `user.*` attributes and
///   file capabilities (always version 2: they hold in any id range);
/// - OCI whiteouts become character devices 0/0 and opaque marks;
/// - device nodes and sockets are passed over, a sandbox could not open them anyway;
/// - names, links and sizes that break a rule end it with an error that names the entry.
class LayerWriter {
  public:
    /// Borrows `root`, the empty directory of the layer.
    LayerWriter(int root, ImportBudget& budget)
        : root_(root), budget_(budget), tree_(root, budget) {}

    Status add(ArchiveReader& reader, archive_entry* entry);
    /// Sets the times of the directories, which every entry in them changes.
    Result<LayerRecord> finish();
    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

  private:
    Status add_root(archive_entry* entry);
    Status add_directory(int parent, const EntryPath& path, archive_entry* entry);
    Status add_file(int parent, const EntryPath& path, ArchiveReader& reader, archive_entry* entry);
    Status add_symlink(int parent, const EntryPath& path, archive_entry* entry);
    Status add_fifo(int parent, const EntryPath& path, archive_entry* entry);
    Status remember_times(const EntryPath& path, archive_entry* entry);

    int root_;
    ImportBudget& budget_;
    LayerTree tree_;
    LayerRecord record_;
    std::uint64_t skipped_ = 0;
    std::vector<std::pair<std::string, timespec>> directory_times_;
    std::uint64_t directory_names_ = 0;  ///< bytes held in directory_times_
};

/// All entries of `tar`, then the stream's rest.
Result<LayerRecord> unpack_layer(InputStream& tar, int root, ImportBudget& budget);

}  // namespace opensandbox::image
