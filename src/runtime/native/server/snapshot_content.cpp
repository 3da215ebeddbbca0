#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/layer_copy.hpp"
#include "runtime/native/records/journal.hpp"
#include "runtime/native/records/spawner_options.hpp"
#include "runtime/native/server/readings.hpp"

#include <algorithm>

namespace opensandbox::runtime::native {

bool image_needed(const std::filesystem::path& state_directory, const std::string& digest) {
    auto records = SnapshotFiles(state_directory).read_all();
    if (records && std::ranges::any_of(*records, [&](const SnapshotRecord& record) {
            return record.image.digest == digest;
        })) {
        return true;
    }
    std::error_code error;
    for (const auto& file :
         std::filesystem::directory_iterator(journal_directory(state_directory), error)) {
        auto entry = parse_entry(read_file_or_empty(file.path()));
        if (entry && entry->digest == digest) return true;
    }
    return false;
}

Result<SnapshotContent> snapshot_content(const SnapshotFiles& files, const std::string& id) {
    auto record = files.read(id);
    if (!record) return record.error();
    if (!record->image.usr.empty()) {
        return Error(ErrorCode::conflict,
                     "the snapshot stands on the image \"host\", which is made of this machine's "
                     "own /usr: that is no layer that an image could hold; start from an imported "
                     "or pulled image instead");
    }
    SnapshotContent content;
    content.image_digest = record->image.digest;
    for (auto name = record->layers.rbegin(); name != record->layers.rend(); ++name) {
        content.layers.emplace_back([from = files.layer(*name) / "u"](const auto& to) {
            return copy_layer(from, to, LayerFiles::linked);
        });
    }
    return content;
}

}  // namespace opensandbox::runtime::native
