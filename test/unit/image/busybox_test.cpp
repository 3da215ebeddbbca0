#include "archives.hpp"
#include "image/directory_archive.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::image::test;
namespace fs = std::filesystem;

namespace {

const fs::path busybox = "/bin/busybox";

/// A root with busybox, its applets, and a few directories.
void make_root(const fs::path& root) {
    for (const char* name : {"bin", "etc", "tmp", "usr/bin", "var/log"}) {
        fs::create_directories(root / name);
    }
    fs::copy_file(busybox, root / "bin/busybox");
    for (const char* applet : {"sh", "echo", "cat", "ls"}) {
        fs::create_symlink("busybox", root / "bin" / applet);
    }
    std::ofstream(root / "etc/motd") << "hello from busybox\n";
}

std::string tar_of(const fs::path& directory) {
    std::string bytes;
    REQUIRE(image::write_archive(directory, [&](std::span<const char> piece) -> Status {
        bytes.append(piece.data(), piece.size());
        return {};
    }));
    return bytes;
}

/// Runs `cat /etc/motd` with the layer as root.
std::string run_in(const fs::path& root) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const char* arguments[] = {"/bin/cat", "/etc/motd", nullptr};
        if (::dup2(ends[1], 1) < 0 || ::chroot(root.c_str()) != 0 || ::chdir("/") != 0)
            ::_exit(125);
        ::execv(arguments[0], const_cast<char* const*>(arguments));
        ::_exit(126);
    }
    ::close(ends[1]);
    char text[256];
    std::string output;
    for (ssize_t count; (count = ::read(ends[0], text, sizeof text)) > 0;) {
        output.append(text, static_cast<std::size_t>(count));
    }
    ::close(ends[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    return output;
}

}  // namespace

TEST_CASE("a busybox root runs from an OCI layout, a docker archive and a root tar") {
    INFO("needs root and busybox-static");
    REQUIRE((fs::exists(busybox) && ::geteuid() == 0));
    TemporaryDirectory directory;
    make_root(directory.path() / "root");
    std::string root = tar_of(directory.path() / "root");
    OciImage image({root});
    std::string docker =
        tar({TarEntry("l/layer.tar", root), TarEntry("c.json", image.config),
             TarEntry("manifest.json",
                      R"([{"Config":"c.json","RepoTags":null,"Layers":["l/layer.tar"]}])")});
    for (const std::string& archive : {image.archive(), docker, root, gzip(root), zstd(docker)}) {
        TestStore test;
        auto info = test.import(archive, "busybox:1");
        REQUIRE(info);
        CHECK(info->size > 1'000'000);
        CHECK(snapshot(test.root("busybox:1")) == snapshot(directory.path() / "root"));
        CHECK(run_in(test.root("busybox:1")) == "hello from busybox\n");
    }
}
