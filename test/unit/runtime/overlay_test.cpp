#include "runtime/native/ground/layer/overlay.hpp"

#include "base/remove_tree.hpp"
#include "runtime/native/ground/kernel/id_map.hpp"
#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdlib.h>
#include <unistd.h>

using namespace opensandbox;
using opensandbox::runtime::test::succeeded;
using namespace opensandbox::runtime::native;

namespace {

constexpr std::uint32_t kIdBase = 0x2000'0000;

struct Layers {
    Layers() {
        char name[] = "/tmp/opensandbox-test-XXXXXX";
        path = ::mkdtemp(name);
        for (const char* directory : {"upper", "lower", "slot", "slot/u", "slot/w"}) {
            std::filesystem::create_directory(path / directory);
            ::chmod((path / directory).c_str(), 0755);
        }
        std::ofstream(path / "lower" / "both") << "lower";
        std::ofstream(path / "lower" / "low") << "lower";
        std::ofstream(path / "upper" / "both") << "upper";
    }
    ~Layers() { (void)remove_tree(path); }
    std::filesystem::path path;
};

/// Builds one over both layers and runs the checks on it, in a child since securebits stay.
int with_overlay(const Layers& layers, int (*checks)(int mount)) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        if (!keep_capabilities_over_id_changes()) ::_exit(101);
        auto user_namespace = make_user_namespace(kIdBase);
        if (!user_namespace) ::_exit(102);
        auto base = clone_tree(layers.path / "slot", user_namespace->get());
        if (!base) ::_exit(103);
        const std::vector<std::string> lowers{(layers.path / "upper").string(),
                                              (layers.path / "lower").string()};
        OverlaySpec spec;
        spec.lowers = lowers;
        spec.user_namespace = user_namespace->get();
        spec.base = base->get();
        spec.id_base = kIdBase;
        auto overlay = build_overlay(spec);
        if (!overlay) ::_exit(104);
        overlay->scaffold.clear();
        // Who is inside acts with shifted ids.
        ::setfsuid(kIdBase);
        ::setfsgid(kIdBase);
        ::_exit(checks(overlay->mount.get()));
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
}

std::string read_at(int directory, const char* name) {
    UniqueFd fd(::openat(directory, name, O_RDONLY));
    char text[16]{};
    if (!fd || ::read(fd.get(), text, sizeof text - 1) < 0) return {};
    return text;
}

}  // namespace

TEST_CASE("the uppermost layer wins and ids are shifted", "[runtime][overlay]") {
    Layers layers;
    const int failed = with_overlay(layers, [](int mount) {
        if (read_at(mount, "both") != "upper") return 1;
        if (read_at(mount, "low") != "lower") return 2;
        struct stat info{};
        if (::fstatat(mount, "low", &info, 0) < 0 || info.st_uid != kIdBase) return 3;
        return 0;
    });
    CHECK(failed == 0);
}

TEST_CASE("what is written goes to the slot's directory with ids as inside", "[runtime][overlay]") {
    Layers layers;
    const int failed = with_overlay(layers, [](int mount) {
        UniqueFd made(::openat(mount, "made", O_CREAT | O_WRONLY, 0640));
        if (!made) return 1;
        UniqueFd changed(::openat(mount, "low", O_WRONLY | O_APPEND));
        if (!changed || ::write(changed.get(), "!", 1) != 1) return 2;
        if (::unlinkat(mount, "both", 0) < 0) return 3;
        return 0;
    });
    CHECK(failed == 0);
    struct stat info{};
    REQUIRE(::stat((layers.path / "slot/u/made").c_str(), &info) == 0);
    CHECK(info.st_uid == 0);
    CHECK(std::filesystem::file_size(layers.path / "slot/u/low") == 6);
    CHECK(std::filesystem::file_size(layers.path / "lower/low") == 5);
    CHECK(std::filesystem::exists(layers.path / "upper/both"));
}

TEST_CASE("a layer that does not exist is named", "[runtime][overlay]") {
    const std::vector<std::string> lowers{"/no/such/layer"};
    OverlaySpec spec;
    spec.lowers = lowers;
    const auto overlay = build_overlay(spec);
    REQUIRE_FALSE(succeeded(overlay));
    CHECK(overlay.error().message().find("/no/such/layer") != std::string::npos);
}
