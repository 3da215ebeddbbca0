#include "image/import.hpp"

#include "image/layer_unpack.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::image {
namespace {

constexpr int kMostNestedIndexes = 4;
constexpr std::string_view kRootLayer = "root";

std::string digest_of_layers(const std::vector<std::string>& layers) {
    std::string text;
    for (const std::string& hex : layers)
        text += "sha256:" + hex + "\n";
    return "sha256:" + sha256_hex(text);
}

std::string blob_member(const std::string& hex) {
    return "blobs/sha256/" + hex;
}

Error wrong_size(std::string_view what, std::uint64_t is, std::uint64_t must_be) {
    return {ErrorCode::invalid_argument, in_quotes(what) + ": the size is " + std::to_string(is) +
                                             ", must be " + std::to_string(must_be)};
}

/// Docker names documents after their digest, "<hex>.json" or "blobs/sha256/<hex>".
std::string_view hex_in_name(std::string_view member) {
    if (std::size_t slash = member.rfind('/'); slash != std::string_view::npos) {
        member.remove_prefix(slash + 1);
    }
    member = member.substr(0, member.find('.'));
    if (member.starts_with("sha256:")) member.remove_prefix(7);
    return is_sha256_hex(member) ? member : std::string_view();
}

}  // namespace

Status Import::read(const ByteSource& source) {
    std::filesystem::path file = staging_ / "archive";
    spool_ = UniqueFd(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!spool_) return Error::from_errno(errno, "make " + file.string());
    SourceInput packed(source, budget_);
    auto plain = decompressed(packed);
    if (!plain) return plain.error();
    StoppableInput stoppable(**plain, stop_);
    MeteredInput metered(stoppable, budget_, ImportBudget::Stage::archive);
    HashedInput hashed(metered);
    RecordedInput recorded(hashed, spool_.get());

    std::string directory(kRootLayer);
    auto root = make_layer_directory(staging_ / directory);
    if (!root) return root.error();
    ArchiveReader reader(recorded, ArchiveReader::Kind::tar);
    LayerWriter writer(root->get(), budget_);
    bool is_root = false;
    for (;;) {
        auto entry = reader.next();
        if (!entry) return entry.error();
        if (!*entry) break;
        const char* raw = archive_entry_pathname(*entry);
        std::string_view name = raw ? raw : "";
        bool is_top = name == "." || name == "./";
        if (!is_root && !is_top) {
            if (!is_root_name(name)) break;
            is_root = true;
            recorded.stop();
        }
        if (auto ok = writer.add(reader, *entry); !ok) return ok;
    }
    if (auto ok = drain(recorded); !ok) return ok;
    if (auto ok = drain(packed); !ok) return ok;
    if (is_root) {
        auto layer = writer.finish();
        if (!layer) return layer.error();
        return keep_root(*layer, hashed.finish());
    }
    ::rmdir((staging_ / directory).c_str());
    budget_.restart_layers();
    return {};
}

Status Import::keep_root(const LayerRecord& layer, const std::string& diff_id) {
    if (layer.entries == 0) {
        return Error(ErrorCode::invalid_argument, "the archive holds no files");
    }
    std::filesystem::path from = staging_ / kRootLayer;
    if (::rename(from.c_str(), (staging_ / diff_id).c_str()) != 0) {
        return Error::from_errno(errno, "rename " + from.string());
    }
    StagedImage staged;
    staged.image.layers = {diff_id};
    staged.image.digest = digest_of_layers(staged.image.layers);
    staged.image.created_at = now();
    staged.layers.emplace(diff_id, layer);
    root_ = std::move(staged);
    spool_.reset();
    ::unlink((staging_ / "archive").c_str());
    return {};
}

Status Import::stage_kept_root() {
    auto directory = make_layer_directory(staging_ / kRootLayer);
    if (!directory) return directory.error();
    FileInput file(spool_.get());
    StoppableInput input(file, stop_);
    HashedInput tar(input);
    auto layer = unpack_layer(tar, directory->get(), budget_);
    if (!layer) return layer.error();
    return keep_root(*layer, tar.finish());
}

Result<StagedImage> Import::stage(const std::function<bool(const std::string&)>& has_layer) {
    if (root_) return *root_;
    budget_.restart_layers();
    auto members = ArchiveMembers::scan(spool_.get());
    if (!members) return members.error();
    bool layout = members->has("oci-layout") && members->has("index.json");
    bool docker = members->has("manifest.json");
    if (members->looks_like_root() || (!layout && !docker)) {
        if (auto ok = stage_kept_root(); !ok) return ok.error();
        return *root_;
    }
    auto plan = layout ? plan_layout(*members) : plan_docker(*members);
    if (!plan) return plan.error();
    return stage_plan(std::move(*plan), *members, has_layer);
}

Result<std::string> Import::read_blob(const ArchiveMembers& members, const Descriptor& blob) {
    std::string name = blob_member(blob.hex);
    auto content = members.read(name);
    if (!content) return content;
    if (content->size() != blob.size) return wrong_size(name, content->size(), blob.size);
    if (std::string hex = sha256_hex(*content); hex != blob.hex) {
        return wrong_digest(name, hex, blob.hex);
    }
    return content;
}

Result<Import::Plan> Import::plan_layout(const ArchiveMembers& members) {
    auto text = members.read("index.json");
    std::string document = "index.json";
    Descriptor chosen;
    for (int level = 0; level < kMostNestedIndexes; ++level) {
        if (!text) return text.error();
        auto index = parse_index(*text);
        if (!index) return index.error().within(document);
        auto choice = choose(*index, reference_);
        if (!choice) return choice.error().within(document);
        chosen = std::move(*choice);
        document = blob_member(chosen.hex);
        text = read_blob(members, chosen);
        if (!text) return text.error();
        if (!is_index(chosen)) break;
    }
    auto manifest = parse_manifest(*text);
    if (!manifest) return manifest.error().within(document);
    Plan plan;
    plan.image.digest = "sha256:" + chosen.hex;
    for (const Descriptor& blob : manifest->layers) {
        LayerSource layer;
        layer.member = blob_member(blob.hex);
        layer.hex = blob.hex;
        layer.size = blob.size;
        plan.layers.push_back(std::move(layer));
    }
    auto config = read_blob(members, manifest->config);
    if (!config) return config.error();
    plan.documents.emplace();
    plan.documents->media_type = chosen.media_type;
    plan.documents->manifest = std::move(*text);
    plan.documents->config = *config;
    if (auto ok = plan_config(plan, *config); !ok) {
        return ok.error().within(blob_member(manifest->config.hex));
    }
    return plan;
}

Result<Import::Plan> Import::plan_docker(const ArchiveMembers& members) {
    auto text = members.read("manifest.json");
    if (!text) return text.error();
    auto manifests = parse_docker_manifest(*text);
    if (!manifests) return manifests.error().within("manifest.json");
    auto manifest = choose(*manifests, reference_);
    if (!manifest) return manifest.error();
    auto config = members.read(manifest->config);
    if (!config) return config.error();
    std::string hex = sha256_hex(*config);
    if (auto named = hex_in_name(manifest->config); !named.empty() && named != hex) {
        return wrong_digest(manifest->config, hex, std::string(named));
    }
    Plan plan;
    plan.image.digest = "sha256:" + hex;
    for (std::string& member : manifest->layers) {
        LayerSource layer;
        layer.member = std::move(member);
        plan.layers.push_back(std::move(layer));
    }
    if (auto ok = plan_config(plan, *config); !ok) return ok.error().within(manifest->config);
    return plan;
}

Status Import::plan_config(Plan& plan, std::string_view text) {
    auto config = parse_config(text);
    if (!config) return config.error();
    if (auto ok = check_platform(config->os, config->architecture); !ok) return ok;
    if (config->diff_ids.size() != plan.layers.size()) {
        return Error(ErrorCode::invalid_argument,
                     "rootfs.diff_ids: holds " + std::to_string(config->diff_ids.size()) +
                         " ids for " + std::to_string(plan.layers.size()) + " layers");
    }
    for (std::size_t i = 0; i < plan.layers.size(); ++i) {
        plan.layers[i].diff_id = config->diff_ids[i];
    }
    plan.image.created_at = now();
    plan.image.layers = std::move(config->diff_ids);
    plan.image.config = std::move(config->config);
    return {};
}

Result<StagedImage> Import::stage_plan(Plan plan, const ArchiveMembers& members,
                                       const std::function<bool(const std::string&)>& has_layer) {
    std::map<std::string, const LayerSource*> wanted;  // by the member that holds the layer
    std::set<std::string> names, diff_ids;
    for (const LayerSource& layer : plan.layers) {
        std::string member = members.resolve(layer.member);
        if (member.empty()) {
            return Error(ErrorCode::invalid_argument,
                         "the archive does not hold the layer " + in_quotes(layer.member));
        }
        if (has_layer(layer.diff_id) || !diff_ids.insert(layer.diff_id).second) continue;
        if (!wanted.emplace(member, &layer).second) {
            return wrong_digest(layer.member, wanted[member]->diff_id, layer.diff_id);
        }
        names.insert(std::move(member));
    }
    StagedImage staged;
    auto unpack = [&](const std::string& name, InputStream& data, std::uint64_t size) -> Status {
        const LayerSource& layer = *wanted[name];
        auto record = stage_layer(layer, data, size);
        if (!record) return record.error().within("layer " + in_quotes(layer.member));
        staged.layers.emplace(layer.diff_id, *record);
        return {};
    };
    if (auto ok = members.visit(names, unpack); !ok) return ok.error();
    staged.image = std::move(plan.image);
    staged.documents = std::move(plan.documents);
    return staged;
}

Result<LayerRecord> Import::stage_layer(const LayerSource& layer, InputStream& data,
                                        std::uint64_t size) {
    if (layer.size && size != *layer.size) return wrong_size(layer.member, size, *layer.size);
    LayerBlobRules rules;
    rules.name = layer.member;
    rules.hex = layer.hex;
    rules.diff_id = layer.diff_id;
    return unpack_blob(rules, data, staging_, budget_, stop_);
}

}  // namespace opensandbox::image
