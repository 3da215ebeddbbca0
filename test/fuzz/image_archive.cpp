// Any bytes, imported as an image. Whatever comes, nothing may be left beside an image that the
// store names, and what it names must be there.
#include "base/remove_tree.hpp"
#include "image/store.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;
namespace image = opensandbox::image;

void must(bool holds) {
    if (!holds) std::abort();
}

/// One store for the whole run, in memory where that is possible.
class FuzzStore {
  public:
    FuzzStore() {
        fs::path base = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
        std::string name = (base / "image-fuzz-XXXXXX").string();
        must(::mkdtemp(name.data()) != nullptr);
        directory_ = name;
        auto opened = image::Store::open(directory_ / "images");
        must(opened.has_value());
        store_ = std::move(*opened);
        limits_.max_unpacked = 1 << 20;
        limits_.max_entries = 1000;
        limits_.max_ratio = 100;
    }
    ~FuzzStore() { (void)opensandbox::remove_tree(directory_); }

    void import(const std::uint8_t* data, std::size_t size) {
        std::string bytes(reinterpret_cast<const char*>(data), size);
        std::size_t at = 0;
        image::ByteSource source = [&](std::span<char> into) -> opensandbox::Result<std::size_t> {
            std::size_t count = bytes.copy(into.data(), into.size(), at);
            at += count;
            return count;
        };
        if (store_->import_archive("fuzz", source, limits_)) {
            auto rootfs = store_->resolve("fuzz");
            must(rootfs.has_value() && !rootfs->layers.empty());
            for (const fs::path& layer : rootfs->layers)
                must(fs::is_directory(layer));
            must(store_->remove("fuzz", nullptr).has_value());
        }
        must(fs::is_empty(directory_ / "images/staging"));
        must(fs::is_empty(directory_ / "images/layers"));
        // Nothing beside the store: no name led out of it.
        must(std::distance(fs::directory_iterator(directory_), fs::directory_iterator()) == 1);
    }

  private:
    fs::path directory_;
    std::unique_ptr<image::Store> store_;
    image::ImportLimits limits_;
};

/// Makes the checksum of every tar header right again, or hardly a mutation would get past it.
void mend_checksums(std::uint8_t* data, std::size_t size) {
    constexpr std::size_t kBlock = 512, magic = 257, checksum = 148;
    for (std::size_t at = 0; at + kBlock <= size; at += kBlock) {
        std::uint8_t* header = data + at;
        if (std::memcmp(header + magic, "ustar", 5) != 0) continue;
        std::memset(header + checksum, ' ', 8);
        unsigned sum = 0;
        for (std::size_t i = 0; i < kBlock; ++i)
            sum += header[i];
        std::snprintf(reinterpret_cast<char*>(header + checksum), 8, "%06o", sum);
    }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, most);
    if (seed % 8 != 0) mend_checksums(data, size);
    return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static FuzzStore store;
    store.import(data, size);
    return 0;
}
