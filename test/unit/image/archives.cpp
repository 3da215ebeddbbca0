#include "archives.hpp"

#include "base/digest.hpp"
#include "base/remove_tree.hpp"
#include "image/manifest.hpp"

#include <archive.h>
#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <archive_entry.h>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace opensandbox::image::test {
namespace fs = std::filesystem;
namespace {

void octal(char* at, int width, unsigned long long value) {
    std::snprintf(at, static_cast<std::size_t>(width), "%0*llo", width - 1, value);
}

std::string padded(std::string_view content) {
    std::string block(content);
    block.resize((content.size() + 511) / 512 * 512, '\0');
    return block;
}

std::string header(const TarEntry& entry, unsigned long long size) {
    std::array<char, 512> raw{};
    std::strncpy(raw.data(), entry.name.c_str(), 100);
    octal(&raw[100], 8, entry.permissions);
    octal(&raw[108], 8, std::min(entry.uid, 07777777U));
    octal(&raw[116], 8, std::min(entry.gid, 07777777U));
    octal(&raw[124], 12, size);
    octal(&raw[136], 12, static_cast<unsigned long long>(entry.mtime));
    raw[156] = entry.kind;
    std::strncpy(&raw[157], entry.link.c_str(), 100);
    std::memcpy(&raw[257], "ustar\00000", 8);
    std::memset(&raw[148], ' ', 8);
    unsigned sum = 0;
    for (char c : raw)
        sum += static_cast<unsigned char>(c);
    std::snprintf(&raw[148], 8, "%06o", sum);
    return {raw.data(), raw.size()};
}

std::string pax_record(const std::string& key, const std::string& value) {
    std::string body = " " + key + "=" + value + "\n";
    std::size_t length = body.size() + 1;
    while (std::to_string(length).size() + body.size() != length)
        ++length;
    return std::to_string(length) + body;
}

std::string filtered(std::string_view bytes, int (*add_filter)(archive*)) {
    std::string packed(bytes.size() + (std::size_t{64} << 10), '\0');
    std::size_t used = 0;
    archive* writer = archive_write_new();
    REQUIRE(archive_write_set_format_raw(writer) == ARCHIVE_OK);
    REQUIRE(add_filter(writer) == ARCHIVE_OK);
    archive_write_set_bytes_per_block(writer, 0);
    REQUIRE(archive_write_open_memory(writer, packed.data(), packed.size(), &used) == ARCHIVE_OK);
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, "data");
    archive_entry_set_filetype(entry, AE_IFREG);
    REQUIRE(archive_write_header(writer, entry) == ARCHIVE_OK);
    REQUIRE(archive_write_data(writer, bytes.data(), bytes.size()) ==
            static_cast<la_ssize_t>(bytes.size()));
    archive_entry_free(entry);
    REQUIRE(archive_write_close(writer) == ARCHIVE_OK);
    archive_write_free(writer);
    packed.resize(used);
    return packed;
}

std::string descriptor(const std::string& media_type, const std::string& content) {
    return R"({"mediaType":")" + media_type + R"(","digest":"sha256:)" + sha256(content) +
           R"(","size":)" + std::to_string(content.size()) + "}";
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "image-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
    (void)remove_tree(path_);
}

TarEntry directory(std::string name, unsigned mode) {
    return TarEntry(std::move(name)).type('5').mode(mode);
}
TarEntry soft_link(std::string name, std::string target) {
    return TarEntry(std::move(name)).type('2').to(std::move(target)).mode(0777);
}
TarEntry hard_link(std::string name, std::string target) {
    return TarEntry(std::move(name)).type('1').to(std::move(target));
}

std::string tar(const std::vector<TarEntry>& entries) {
    std::string bytes;
    for (const TarEntry& entry : entries) {
        std::string records;
        for (const auto& [key, value] : entry.records)
            records += pax_record(key, value);
        if (!records.empty()) {
            TarEntry extension("pax");
            extension.type('x');
            bytes += header(extension, records.size()) + padded(records);
        }
        bool claims = entry.claimed != ~0ULL;
        bytes += header(entry, claims ? entry.claimed : entry.content.size());
        bytes += padded(entry.content);
    }
    return bytes + std::string(1024, '\0');
}

std::string gzip(std::string_view bytes) {
    return filtered(bytes, archive_write_add_filter_gzip);
}
std::string zstd(std::string_view bytes) {
    return filtered(bytes, archive_write_add_filter_zstd);
}
std::string sha256(std::string_view bytes) {
    return sha256_hex(bytes);
}

OciImage::OciImage(const std::vector<std::string>& tars) : architecture(machine_architecture()) {
    for (const std::string& layer : tars)
        add_layer(layer, gzip(layer));
    seal();
}

void OciImage::add_layer(const std::string& tar, std::string blob) {
    Layer layer;
    layer.blob = std::move(blob);
    layer.diff_id = "sha256:" + sha256(tar);
    layers.push_back(std::move(layer));
}

void OciImage::seal() {
    std::string ids, descriptors;
    blobs.clear();
    for (const Layer& layer : layers) {
        if (!ids.empty()) ids += ",", descriptors += ",";
        ids += "\"" + layer.diff_id + "\"";
        descriptors += descriptor(layer.media_type, layer.blob);
        blobs.emplace_back(sha256(layer.blob), layer.blob);
    }
    config = R"({"architecture":")" + architecture + R"(","os":"linux","config":)" + run_config +
             R"(,"rootfs":{"type":"layers","diff_ids":[)" + ids + "]}}";
    manifest = R"({"schemaVersion":2,"config":)" +
               descriptor("application/vnd.oci.image.config.v1+json", config) + R"(,"layers":[)" +
               descriptors + "]}";
    index = R"({"schemaVersion":2,"manifests":[)" +
            descriptor("application/vnd.oci.image.manifest.v1+json", manifest) + "]}";
    blobs.emplace_back(sha256(config), config);
    blobs.emplace_back(sha256(manifest), manifest);
}

std::string OciImage::archive() const {
    std::vector<TarEntry> entries = {directory("./"), directory("./blobs/"),
                                     directory("./blobs/sha256/")};
    for (const auto& [hex, content] : blobs)
        entries.emplace_back("./blobs/sha256/" + hex, content);
    // Last, as the standard tools may write it.
    entries.emplace_back("./oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    entries.emplace_back("./index.json", index);
    return tar(entries);
}

ByteSource source_of(std::string bytes, std::size_t step) {
    auto shared = std::make_shared<std::string>(std::move(bytes));
    auto at = std::make_shared<std::size_t>(0);
    return [shared, at, step](std::span<char> into) -> Result<std::size_t> {
        std::size_t count = shared->copy(into.data(), std::min(step, into.size()), *at);
        *at += count;
        return count;
    };
}

std::vector<std::string> snapshot(const fs::path& directory) {
    std::vector<std::string> lines;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        struct stat status{};
        REQUIRE(::lstat(entry.path().c_str(), &status) == 0);
        std::string line = entry.path().lexically_relative(directory).string();
        line += " mode " + std::to_string(status.st_mode) + " owner " +
                std::to_string(status.st_uid) + ":" + std::to_string(status.st_gid);
        if (S_ISLNK(status.st_mode)) line += " -> " + fs::read_symlink(entry.path()).string();
        if (S_ISREG(status.st_mode)) {
            std::ifstream file(entry.path(), std::ios::binary);
            std::string content((std::istreambuf_iterator<char>(file)), {});
            line += " content " + sha256(content);
        }
        lines.push_back(std::move(line));
    }
    std::ranges::sort(lines);
    return lines;
}

TestStore::TestStore() {
    auto opened = Store::open(directory.path() / "images");
    REQUIRE(opened);
    store = std::move(*opened);
}

Result<ImageInfo> TestStore::import(const std::string& archive, const std::string& reference,
                                    const ImportLimits& limits) {
    return store->import_archive(reference, source_of(archive), limits);
}

Error TestStore::refused(const std::string& archive, const ImportLimits& limits) {
    auto before = snapshot(directory.path());
    auto result = import(archive, "refused", limits);
    REQUIRE_FALSE(result);
    CHECK(snapshot(directory.path()) == before);
    return result.error();
}

fs::path TestStore::root(const std::string& reference) {
    auto rootfs = store->resolve(reference);
    REQUIRE(rootfs);
    REQUIRE(rootfs->layers.size() == 1);
    return rootfs->layers[0];
}

}  // namespace opensandbox::image::test
