#include "runtime/native/spawner/snapshots/snapshot_table.hpp"

#include "base/log.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"

#include <algorithm>

namespace opensandbox::runtime::native {

Status SnapshotTable::start(InUse in_use) {
    in_use_ = std::move(in_use);
    if (auto s = files_.prepare(); !s) return s;
    if (auto s = files_.discard_staged(); !s) return s;
    auto records = files_.read_all();
    if (!records) return records.error();
    const std::string boot = boot_id();
    bool unsynced = false;
    for (const SnapshotRecord& record : *records) {
        if (record.source) {
            // Whoever made copies of it is gone.
            if (auto s = files_.remove_record(record.id); !s) return s;
            continue;
        }
        const bool safe = files_.synced(record.id);
        if (!safe && record.boot != boot) {
            log::warn("snapshot was not on the disk yet when the machine stopped: it is dropped",
                      {{"snapshot", record.id}});
            if (auto s = files_.remove_record(record.id); !s) return s;
            continue;
        }
        unsynced = unsynced || !safe;
        chains_.emplace(record.id, record.layers);
    }
    if (unsynced) {
        jobs_.start({[files = files_, records = std::move(*records)]() -> Status {
                         for (const SnapshotRecord& record : records)
                             if (!record.source && !files.synced(record.id)) files.sync(record.id);
                         return {};
                     },
                     nullptr, nullptr});
    }
    sweep();
    remove_gone();
    return {};
}

std::uint64_t SnapshotTable::make(const SnapshotRecord& record, const std::filesystem::path& slot,
                                  Done done) {
    const std::string id = record.id;
    const std::vector<std::string> layers = record.layers;
    making_.insert(id);
    BackgroundJobs::Job job;
    job.work = [files = files_, record, slot] { return files.make(record, slot); };
    // Copies do not outlive this boot, so what only they stand on need not reach the disk.
    if (!record.source) job.afterwards = [files = files_, id] { files.sync(id); };
    job.done = [this, id, layers, done = std::move(done)](const Status& status) {
        making_.erase(id);
        if (status) {
            chains_.emplace(id, layers);
        } else if (status.error().code() != ErrorCode::conflict) {
            // A process that was ended may have come anywhere.
            (void)files_.remove_record(id);
            (void)files_.discard_staged(id);
            sweep();
            remove_gone();
        }
        done(status);
    };
    return jobs_.start(std::move(job));
}

Status SnapshotTable::remove(const std::string& id) {
    if (making_.contains(id)) return Error(ErrorCode::conflict, "the snapshot is being made");
    if (auto s = files_.remove_record(id); !s) return s;
    chains_.erase(id);
    sweep();
    return {};
}

void SnapshotTable::sweep() {
    std::set<std::string> wanted = in_use_();
    wanted.insert(making_.begin(), making_.end());
    for (const auto& [id, layers] : chains_)
        wanted.insert(layers.begin(), layers.end());
    bool discarded = false;
    for (const std::string& name : files_.layers()) {
        if (wanted.contains(name)) continue;
        if (auto s = files_.discard_layer(name); !s) {
            log::error("a layer of a snapshot stays behind", {{"reason", s.error().message()}});
        } else {
            discarded = true;
        }
    }
    if (discarded) remove_gone();
}

void SnapshotTable::remove_gone() {
    // One at a time: what is discarded meanwhile goes in another round.
    if (removing_) {
        remove_again_ = true;
        return;
    }
    if (!files_.has_gone()) return;
    removing_ = true;
    BackgroundJobs::Job job;
    job.work = [files = files_] { return files.remove_gone(); };
    job.done = [this](const Status& status) {
        removing_ = false;
        if (!status) {
            log::error("remains of a snapshot stay", {{"reason", status.error().message()}});
        }
        if (std::exchange(remove_again_, false)) remove_gone();
    };
    jobs_.start(std::move(job));
}

}  // namespace opensandbox::runtime::native
