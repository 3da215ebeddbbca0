#include "runtime/native/spawner/snapshots/snapshot_files.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "base/remove_tree.hpp"
#include "base/replace_file.hpp"
#include "base/scope_exit.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/layer/layer_copy.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace opensandbox::runtime::native {

namespace fs = std::filesystem;

namespace {

/// Written by us; an image's environment is in it.
constexpr std::uintmax_t kMaxRecord = 4U << 20;
constexpr const char* kRecordSuffix = ".json";

bool has_nothing(const fs::path& directory) {
    std::error_code error;
    return fs::is_empty(directory, error) || error;
}

}  // namespace

std::string format_snapshot(const SnapshotRecord& record) {
    json::object out;
    out["id"] = record.id;
    out["createdAt"] = record.created_at.time_since_epoch().count();
    out["boot"] = record.boot;
    out["image"] = to_json(record.image);
    out["layers"] = json::string_array(record.layers);
    add_egress(record.egress, out);
    if (record.source) out["source"] = format_description(*record.source);
    return json::serialize(out) + "\n";
}

Result<SnapshotRecord> parse_snapshot(std::string_view text) {
    const auto refuse = [](std::string_view member) {
        return Error(ErrorCode::invalid_argument, "snapshot record: " + std::string(member));
    };
    auto document = json::parse(text);
    if (!document) return document.error().within("snapshot record");
    if (!document->is_object()) return refuse("must be an object");
    const json::object& object = document->get_object();
    auto id = json::get_string(object, "id");
    auto at = json::get_integer(object, "createdAt");
    auto boot = json::get_string(object, "boot");
    auto layers = json::get_strings(object, "layers");
    const json::value* image = json::find(object, "image");
    if (!id || !*id || !is_uuid(**id)) return refuse("id");
    if (!at || !*at) return refuse("createdAt");
    if (!boot || !*boot) return refuse("boot");
    if (!layers || !*layers || (*layers)->empty() || (*layers)->size() > kMaxLowers ||
        !std::ranges::all_of(**layers, [](const std::string& name) { return is_uuid(name); })) {
        return refuse("layers");
    }
    if (!image || !image->is_object()) return refuse("image");
    auto origin = parse_origin(image->get_object());
    if (!origin) return origin.error().within("snapshot record: image");
    SnapshotRecord record;
    record.id = std::move(**id);
    record.created_at = Timestamp(std::chrono::microseconds(**at));
    record.boot = std::move(**boot);
    record.layers = std::move(**layers);
    record.image = std::move(*origin);
    auto egress = parse_egress(object);
    if (!egress) return egress.error().within("snapshot record");
    record.egress = std::move(*egress);
    auto source = json::get_string(object, "source");
    if (!source) return refuse("source");
    if (*source) {
        auto description = parse_description(**source);
        if (!description) return description.error().within("snapshot record: source");
        record.source = std::move(*description);
    }
    return record;
}

fs::path SnapshotFiles::record(const std::string& id) const {
    return root_ / (id + kRecordSuffix);
}
fs::path SnapshotFiles::layer(const std::string& name) const {
    return root_ / "layers" / name;
}
fs::path SnapshotFiles::staging(const std::string& id) const {
    return root_ / "staging" / id;
}

Status SnapshotFiles::prepare() const {
    for (const fs::path& path : {root_, root_ / "layers", root_ / "staging", root_ / "gone"}) {
        if (::mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
            return last_error("mkdir " + path.string());
        }
    }
    return {};
}

Result<SnapshotRecord> SnapshotFiles::read(const std::string& id) const {
    const auto absent = [&] {
        return Error(ErrorCode::not_found, "snapshot " + id + " does not exist");
    };
    if (!is_uuid(id)) return absent();
    std::error_code error;
    const auto size = fs::file_size(record(id), error);
    if (error) return absent();
    if (size > kMaxRecord) return Error(ErrorCode::io, "snapshot record: longer than any of ours");
    std::ifstream in(record(id), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    auto parsed = parse_snapshot(text);
    if (parsed && parsed->id != id) return Error(ErrorCode::io, "snapshot record: another's");
    return parsed;
}

Result<std::vector<SnapshotRecord>> SnapshotFiles::read_all() const {
    std::vector<SnapshotRecord> out;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root_, error)) {
        if (entry.path().extension() != kRecordSuffix) continue;
        auto found = read(entry.path().stem().string());
        if (found)
            out.push_back(std::move(*found));
        else
            log::warn("snapshot record is unreadable",
                      {{"path", entry.path().string()}, {"reason", found.error().message()}});
    }
    if (error && error != std::errc::no_such_file_or_directory) {
        return Error::from_errno(error.value(), "list " + root_.string());
    }
    return out;
}

std::set<std::string> SnapshotFiles::layers() const {
    std::set<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root_ / "layers", error)) {
        names.insert(entry.path().filename().string());
    }
    return names;
}

Status SnapshotFiles::make(const SnapshotRecord& record, const fs::path& slot) const {
    const fs::path staged = staging(record.id);
    const fs::path target = layer(record.id);
    if (::access(target.c_str(), F_OK) == 0) {
        return Error(ErrorCode::conflict, "snapshot " + record.id + " exists already");
    }
    ScopeExit clean([&] { (void)remove_tree(staged); });
    if (::mkdir(staged.c_str(), 0700) < 0) return last_error("mkdir " + staged.string());
    if (auto s = copy_layer(slot / "u", staged / "u"); !s) return s;
    // The host's /usr is seldom changed; without a change a restored sandbox starts faster.
    if (!record.image.usr.empty() && !has_nothing(slot / "u2")) {
        if (auto s = copy_layer(slot / "u2", staged / "u2"); !s) return s.error().within("/usr");
    }
    if (::rename(staged.c_str(), target.c_str()) < 0) return last_error("rename the layer");
    clean.dismiss();
    // Written in staging: what a killed process leaves there is discarded.
    auto written = replace_file(this->record(record.id), format_snapshot(record),
                                staging(record.id + kRecordSuffix));
    if (!written) (void)remove_tree(target);
    return written;
}

void SnapshotFiles::sync(const std::string& id) const {
    UniqueFd fd(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::syncfs(fd.get()) < 0) {
        log::warn("snapshot is not on the disk yet", {{"snapshot", id}, {"errno", errno}});
        return;
    }
    const UniqueFd mark(
        ::open((layer(id) / "synced").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

bool SnapshotFiles::synced(const std::string& id) const {
    return ::access((layer(id) / "synced").c_str(), F_OK) == 0;
}

Status SnapshotFiles::remove_record(const std::string& id) const {
    if (!is_uuid(id)) return {};
    if (::unlink(record(id).c_str()) < 0 && errno != ENOENT) return last_error("remove snapshot");
    return {};
}

Status SnapshotFiles::discard(const fs::path& path) const {
    if (::unlink(path.c_str()) == 0) return {};  // A record that was not whole yet.
    const fs::path target = root_ / "gone" / (path.filename().string() + "-" + new_hex_id());
    if (::rename(path.c_str(), target.c_str()) < 0 && errno != ENOENT) {
        return last_error("discard " + path.string());
    }
    return {};
}

Status SnapshotFiles::discard_layer(const std::string& name) const {
    return discard(layer(name));
}

Status SnapshotFiles::discard_staged(const std::string& id) const {
    if (auto s = discard(staging(id)); !s) return s;
    return discard(staging(id + kRecordSuffix));
}

Status SnapshotFiles::discard_staged() const {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root_ / "staging", error)) {
        if (auto s = discard(entry.path()); !s) return s;
    }
    return {};
}

bool SnapshotFiles::has_gone() const {
    return !has_nothing(root_ / "gone");
}

Status SnapshotFiles::remove_gone() const {
    Status result;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root_ / "gone", error)) {
        if (auto s = remove_tree(entry.path()); !s) result = s;
    }
    return result;
}

}  // namespace opensandbox::runtime::native
