#pragma once

#include "image/store.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A failed assertion on a Result shows its error.
template <class T>
struct Catch::StringMaker<boost::system::result<T, opensandbox::Error>> {
    static std::string convert(const boost::system::result<T, opensandbox::Error>& result) {
        return result ? "a value" : "error: " + result.error().message();
    }
};

/// Archives for the image tests, made by hand so that they can be as wrong as a test needs.
namespace opensandbox::image::test {

/// A directory of the test's own; gone with it.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory();
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

struct TarEntry {
    TarEntry(std::string n, std::string c = {}) : name(std::move(n)), content(std::move(c)) {}
    TarEntry& type(char t) { return kind = t, *this; }
    TarEntry& to(std::string target) { return link = std::move(target), *this; }
    TarEntry& mode(unsigned m) { return permissions = m, *this; }
    TarEntry& owner(unsigned u, unsigned g) { return uid = u, gid = g, *this; }
    TarEntry& time(long t) { return mtime = t, *this; }
    /// A pax record, such as "SCHILY.xattr.user.note" or "path".
    TarEntry& pax(std::string key, std::string value) {
        return records.emplace_back(std::move(key), std::move(value)), *this;
    }
    /// States another size than the content has.
    TarEntry& claim(unsigned long long size) { return claimed = size, *this; }

    std::string name, content, link;
    char kind = '0';
    unsigned permissions = 0644, uid = 0, gid = 0;
    long mtime = 1'000'000'000;
    std::vector<std::pair<std::string, std::string>> records;
    unsigned long long claimed = ~0ULL;
};

TarEntry directory(std::string name, unsigned mode = 0755);
TarEntry soft_link(std::string name, std::string target);
TarEntry hard_link(std::string name, std::string target);

std::string tar(const std::vector<TarEntry>& entries);
std::string gzip(std::string_view bytes);
std::string zstd(std::string_view bytes);
std::string sha256(std::string_view bytes);

/// An OCI layout with one image, every part of which a test may spoil before `archive`.
struct OciImage {
    struct Layer {
        std::string blob;     ///< as stored
        std::string diff_id;  ///< "sha256:…"
        std::string media_type = "application/vnd.oci.image.layer.v1.tar+gzip";
    };
    explicit OciImage(const std::vector<std::string>& tars);

    void add_layer(const std::string& tar, std::string blob);
    /// Writes config, manifest and index from the fields.
    void seal();
    [[nodiscard]] std::string archive() const;
    [[nodiscard]] std::string manifest_digest() const { return "sha256:" + sha256(manifest); }

    std::string architecture;
    std::string run_config = R"({"Env":["PATH=/bin","A=b=c"],"User":"1000:1000",)"
                             R"("WorkingDir":"/srv","Entrypoint":["/bin/sh"],"Cmd":["-c","x"]})";
    std::vector<Layer> layers;
    std::string config, manifest, index;
    std::vector<std::pair<std::string, std::string>> blobs;  ///< hex and content, in order
};

/// Hands out the bytes in pieces of `step`.
ByteSource source_of(std::string bytes, std::size_t step = 4096);

/// Every file below: kind, mode, owner, size, link target and content, sorted.
std::vector<std::string> snapshot(const std::filesystem::path& directory);

/// A store in its own directory, opened.
struct TestStore {
    TestStore();
    Result<ImageInfo> import(const std::string& archive, const std::string& reference = "test",
                             const ImportLimits& limits = {});
    /// Imports, expects failure, and checks that the store is as it was. Returns the error.
    Error refused(const std::string& archive, const ImportLimits& limits = {});
    /// The only layer of the image.
    std::filesystem::path root(const std::string& reference = "test");

    TemporaryDirectory directory;
    std::unique_ptr<Store> store;
};

}  // namespace opensandbox::image::test
