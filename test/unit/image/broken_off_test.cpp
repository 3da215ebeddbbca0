#include "archives.hpp"
#include "image/archive_writer.hpp"
#include "image/directory_archive.hpp"
#include "image/export.hpp"
#include "image/layer_writer.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <malloc.h>
#include <stop_token>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

namespace {

constexpr off_t kHuge = off_t{5} << 30;
constexpr std::size_t kLittle = std::size_t{64} << 20;

/// A file of `kSize` bytes with a few at its beginning, its middle and its end.
void write_sparse(const fs::path& path, off_t kSize) {
    fs::create_directories(path.parent_path());
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    REQUIRE(fd >= 0);
    CHECK(::ftruncate(fd, kSize) == 0);
    CHECK(::pwrite(fd, "begin", 5, 0) == 5);
    CHECK(::pwrite(fd, "middle", 6, kSize / 2) == 6);
    CHECK(::pwrite(fd, "end", 3, kSize - 3) == 3);
    ::close(fd);
}

std::string text_at(const fs::path& path, off_t offset, std::size_t length) {
    std::string text(length, '\0');
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    const ssize_t count = ::pread(fd, text.data(), length, offset);
    ::close(fd);
    CHECK(std::cmp_equal(count, length));
    return text;
}

void check_sparse(const fs::path& path, off_t kSize) {
    struct stat status{};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK(status.st_size == kSize);
    CHECK(status.st_blocks * 512 < (off_t{1} << 20));
    CHECK(text_at(path, 0, 6) == std::string("begin\0", 6));
    CHECK(text_at(path, kSize / 2 - 1, 8) == std::string("\0middle\0", 8));
    CHECK(text_at(path, kSize - 4, 4) == std::string("\0end", 4));
}

std::string whole(image::DirectoryArchive archive) {
    std::string bytes, piece(65536, '\0');
    for (;;) {
        auto count = archive.read(piece);
        REQUIRE(count);
        if (*count == 0) return bytes;
        bytes.append(piece, 0, *count);
    }
}

/// The most memory that this process had in use since the last reset.
std::size_t peak_memory() {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
    }
    return 0;
}

void reset_peak() {
    std::ofstream("/proc/self/clear_refs") << "5";
}

}  // namespace

TEST_CASE("an archive that is broken off in the midst of a file takes no memory for the rest") {
    TemporaryDirectory directory;
    fs::path file = directory.path() / "huge";
    // Its data is claimed to be all there, as that of a file without holes is.
    reset_peak();
    const std::size_t before = peak_memory();
    {
        image::ArchiveWriter writer;
        REQUIRE(writer.start());
        image::EntryPointer entry(archive_entry_new());
        archive_entry_set_pathname(entry.get(), "huge");
        archive_entry_set_filetype(entry.get(), AE_IFREG);
        archive_entry_set_size(entry.get(), kHuge);
        REQUIRE(writer.add(entry.get(), "huge"));
        REQUIRE(writer.data(std::string(1000, 'x'), "huge"));
        CHECK(writer.has_bytes());
    }
    CHECK(peak_memory() < before + kLittle);
}

TEST_CASE("archives that are broken off leave no memory behind") {
    TemporaryDirectory directory;
    write_sparse(directory.path() / "huge", kHuge);
    auto break_off = [&](std::size_t pieces) {
        auto archive =
            image::DirectoryArchive::open(directory.path(), image::DirectoryArchive::Form::layer);
        REQUIRE(archive);
        std::string piece(4096, '\0');
        for (std::size_t i = 0; i < pieces; ++i)
            REQUIRE(archive->read(piece));
    };
    break_off(3);
    const auto before = ::mallinfo2().uordblks;
    for (std::size_t i = 0; i < 1000; ++i)
        break_off(i % 5);
    CHECK(::mallinfo2().uordblks <= before + 16384);
}

TEST_CASE("an archive ends when it is told to, also within a hole") {
    TemporaryDirectory directory;
    write_sparse(directory.path() / "huge", kHuge);
    std::stop_source stop;
    auto archive = image::DirectoryArchive::open_entry(directory.path(), "", stop.get_token());
    REQUIRE(archive);
    std::string piece(512, '\0');
    REQUIRE(archive->read(piece));
    stop.request_stop();
    for (int i = 0; i < 100; ++i) {
        auto count = archive->read(piece);
        if (count) continue;
        CHECK(count.error().code() == ErrorCode::cancelled);
        return;
    }
    FAIL("it went on");
}

TEST_CASE("holes of files are named in an archive and stay holes in an image") {
    TemporaryDirectory directory;
    fs::path root = directory.path() / "root";
    write_sparse(root / "etc/huge", kHuge);
    write_sparse(root / "etc/other", kHuge);
    fs::resize_file(root / "etc/other", 100'000);
    const int empty = ::open((root / "etc/nothing").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    REQUIRE(::ftruncate(empty, kHuge) == 0);
    ::close(empty);
    auto opened = image::DirectoryArchive::open(root);
    REQUIRE(opened);
    const std::string archive = whole(std::move(*opened));
    CHECK(archive.size() < (std::size_t{1} << 20));
    TestStore test;
    REQUIRE(test.import(archive, "sparse:1"));
    check_sparse(test.root("sparse:1") / "etc/huge", kHuge);
    struct stat status{};
    REQUIRE(::stat((test.root("sparse:1") / "etc/nothing").c_str(), &status) == 0);
    CHECK(status.st_size == kHuge);
    CHECK(status.st_blocks == 0);
    CHECK(fs::file_size(test.root("sparse:1") / "etc/other") == 100'000);
}

TEST_CASE("a layer has zeros for holes, wherever those are, and is unpacked with holes") {
    constexpr off_t kSize = off_t{256} << 20;
    TestStore from, to;
    TemporaryDirectory directory;
    fs::path root = directory.path() / "root";
    write_sparse(root / "etc/huge", kSize);
    auto opened = image::DirectoryArchive::open(root);
    REQUIRE(opened);
    REQUIRE(from.import(whole(std::move(*opened)), "app:1"));
    auto exported = image::ExportedImage::make(*from.store, "app:1", {});
    REQUIRE(exported);
    std::string archive, piece(65536, '\0');
    for (;;) {
        auto count = (*exported)->read(piece);
        REQUIRE(count);
        if (*count == 0) break;
        archive.append(piece, 0, *count);
    }
    REQUIRE(to.import(archive, "app:1"));
    check_sparse(to.root("app:1") / "etc/huge", kSize);
}

TEST_CASE("an import that is told to end leaves nothing") {
    TestStore test;
    OciImage image({tar({TarEntry("etc/a", std::string(3'000'000, 'x'))})});
    const std::string archive = image.archive();
    std::stop_source stop;
    auto source = [at = std::size_t{0}, &archive,
                   &stop](std::span<char> into) mutable -> Result<std::size_t> {
        const std::size_t count = archive.copy(into.data(), into.size(), at);
        at += count;
        // All has come by then; what is left is to unpack it.
        if (count == 0) stop.request_stop();
        return count;
    };
    auto info = test.store->import_archive("late", source, {}, stop.get_token());
    REQUIRE_FALSE(info);
    CHECK(info.error().code() == ErrorCode::cancelled);
    CHECK(fs::is_empty(test.directory.path() / "images/staging"));
}
