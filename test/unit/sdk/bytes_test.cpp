#include "opensandbox/bytes.hpp"

#include "sdk/upload_body.hpp"
#include "support/event_loop.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace opensandbox;
using namespace opensandbox::sdk;
using opensandbox::test_support::Loop;

namespace {

class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name = (fs::temp_directory_path() / "opensandbox-sdk-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    fs::path path;
};

std::string content_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

std::size_t entries_in(const fs::path& path) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

/// Gives its pieces one by one, whatever size it claims.
class Pieces : public ByteReader {
  public:
    Pieces(std::vector<std::string> pieces, std::optional<std::uint64_t> size)
        : pieces_(std::move(pieces)), size_(size) {}
    Awaitable<sdk::Result<std::size_t>> read_some(std::span<char> into) override {
        if (at_ == pieces_.size()) co_return std::size_t{0};
        const std::string& piece = pieces_[at_++];
        std::copy(piece.begin(), piece.end(), into.begin());
        co_return piece.size();
    }
    [[nodiscard]] std::optional<std::uint64_t> size() const override { return size_; }

  private:
    std::vector<std::string> pieces_;
    std::optional<std::uint64_t> size_;
    std::size_t at_ = 0;
};

Awaitable<opensandbox::Result<std::string>> read_body(http::BodyReader& body, std::size_t piece) {
    std::string all;
    std::string buffer(piece, '\0');
    for (;;) {
        std::span<char> into(buffer);
        auto count = co_await body.read_some(into);
        if (!count) co_return count.error();
        if (*count == 0) co_return all;
        all.append(buffer, 0, *count);
    }
}

}  // namespace

TEST_CASE("a downloaded file appears whole, on commit only") {
    TemporaryDirectory directory;
    const fs::path target = directory.path / "out";
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        auto file = FileWriter::create(target);
        REQUIRE(file.has_value());
        auto first = co_await (*file)->write("hello ");
        auto second = co_await (*file)->write("world");
        CHECK(first.has_value());
        CHECK(second.has_value());
        CHECK_FALSE(fs::exists(target));
        CHECK((*file)->commit().has_value());
        CHECK(content_of(target) == "hello world");
    });
    CHECK(entries_in(directory.path) == 1);
}

TEST_CASE("a download that is given up leaves the old file and nothing else") {
    TemporaryDirectory directory;
    const fs::path target = directory.path / "out";
    std::ofstream(target) << "old";
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        auto file = FileWriter::create(target);
        REQUIRE(file.has_value());
        auto written = co_await (*file)->write("new");
        CHECK(written.has_value());
    });
    CHECK(content_of(target) == "old");
    CHECK(entries_in(directory.path) == 1);
}

TEST_CASE("a replaced file keeps its mode, and a link its target") {
    TemporaryDirectory directory;
    const fs::path target = directory.path / "real";
    const fs::path link = directory.path / "link";
    std::ofstream(target) << "old";
    ::chmod(target.c_str(), 0750);
    fs::create_symlink("real", link);
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        auto file = FileWriter::create(link);
        REQUIRE(file.has_value());
        auto written = co_await (*file)->write("new");
        CHECK(written.has_value());
        CHECK((*file)->commit().has_value());
    });
    CHECK(fs::is_symlink(link));
    CHECK(content_of(target) == "new");
    struct stat info{};
    REQUIRE(::stat(target.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0750);
}

TEST_CASE("a device is written in place") {
    Loop loop;
    loop.run([]() -> Awaitable<void> {
        auto file = FileWriter::create("/dev/null");
        REQUIRE(file.has_value());
        auto written = co_await (*file)->write("x");
        CHECK(written.has_value());
        CHECK((*file)->commit().has_value());
    });
    CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("what cannot be read or written is refused with its path") {
    TemporaryDirectory directory;
    auto missing = read_file(directory.path / "none");
    REQUIRE(missing.has_error());
    CHECK(missing.error().code() == sdk::ErrorCode::not_found);
    CHECK(missing.error().message().find("none") != std::string::npos);
    CHECK(read_file(directory.path).error().code() == sdk::ErrorCode::invalid_argument);
    CHECK(FileWriter::create(directory.path).error().code() == sdk::ErrorCode::invalid_argument);
    CHECK(FileWriter::create(directory.path / "no" / "file").has_error());
}

TEST_CASE("a file is read to its end and knows what is left") {
    TemporaryDirectory directory;
    const fs::path path = directory.path / "in";
    const std::string content(300'000, 'x');
    std::ofstream(path) << content;
    Loop loop;
    loop.run([&]() -> Awaitable<void> {
        auto file = read_file(path);
        REQUIRE(file.has_value());
        CHECK((*file)->size() == content.size());
        std::string buffer(100'000, '\0');
        std::string all;
        for (;;) {
            std::span<char> into(buffer);
            auto count = co_await (*file)->read_some(into);
            REQUIRE(count.has_value());
            if (*count == 0) break;
            all.append(buffer, 0, *count);
        }
        CHECK(all == content);
        CHECK((*file)->size() == 0u);
    });
}

TEST_CASE("an upload's body is the source between its frame, whatever size is read at a time") {
    for (std::size_t piece : {64, 7, 4096}) {
        Loop loop;
        loop.run([piece]() -> Awaitable<void> {
            Pieces source({"abc", "def"}, 6);
            std::vector<std::uint64_t> seen;
            UploadBody body("<<", source, ">>", [&](std::uint64_t done, std::uint64_t total) {
                CHECK(total == 6);
                seen.push_back(done);
            });
            CHECK(body.content_length() == 10u);
            auto all = co_await read_body(body, piece);
            REQUIRE(all.has_value());
            CHECK(*all == "<<abcdef>>");
            CHECK(seen == std::vector<std::uint64_t>{3, 6});
        });
    }
}

TEST_CASE("a source of unknown size makes a body of unknown length") {
    Pieces source({"abc"}, std::nullopt);
    UploadBody body("<", source, ">", {});
    CHECK_FALSE(body.content_length());
}

TEST_CASE("a source that gives more or less than it said fails the upload") {
    for (std::uint64_t claimed : {5, 7}) {
        Loop loop;
        loop.run([claimed]() -> Awaitable<void> {
            Pieces source({"abc", "def"}, claimed);
            UploadBody body("", source, "", {});
            auto all = co_await read_body(body, 64);
            CHECK(all.has_error());
            REQUIRE(body.failure());
            CHECK(body.failure()->code() == sdk::ErrorCode::io);
        });
    }
}
