#include "runtime/native/ground/confinement/cgroup.hpp"

#include "runtime/native/ground/kernel/kernel.hpp"
#include "unit/runtime/outcome.hpp"

#include <catch2/catch.hpp>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <sched.h>
#include <unistd.h>

using namespace opensandbox;
using opensandbox::runtime::test::succeeded;
using namespace opensandbox::runtime::native;

namespace {

const std::string group = "opensandbox-test-" + std::to_string(::getpid());

struct Tree {
    Tree() {
        auto prepared = CgroupTree::prepare(group);
        REQUIRE(succeeded(prepared));
        tree = std::move(*prepared);
    }
    ~Tree() { tree.remove(); }
    CgroupTree tree;
};

}  // namespace

TEST_CASE("cgroup hierarchies are found on hosts of every kind", "[runtime][cgroup]") {
    SECTION("v1 only, two controllers in one") {
        const auto found = find_hierarchies(
            "proc /proc proc rw 0 0\n"
            "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n"
            "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
            "cgroup /sys/fs/cgroup/devices cgroup rw,devices 0 0\n"
            "cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n");
        REQUIRE(found.size() == 3);
        CHECK(found[0].base == "/sys/fs/cgroup/cpu,cpuacct");
        CHECK(found[0].controllers == std::set<std::string>{"cpu"});
        CHECK_FALSE(found[0].unified);
    }
    SECTION("both") {
        const auto found = find_hierarchies(
            "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
            "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
            "cgroup2 /elsewhere cgroup2 rw 0 0\n"
            "cgroup /elsewhere/memory cgroup rw,memory 0 0\n");
        REQUIRE(found.size() == 2);
        CHECK(found[1].unified);
        CHECK(found[1].base == "/sys/fs/cgroup/unified");
    }
    SECTION("v2 only, at a path with a blank") {
        const auto found = find_hierarchies("cgroup2 /my\\040cgroups cgroup2 rw 0 0\n");
        REQUIRE(found.size() == 1);
        CHECK(found[0].base == "/my cgroups");
        CHECK(found[0].unified);
    }
}

TEST_CASE("a slot's cgroups are made, limited and removed", "[runtime][cgroup]") {
    Tree tree;
    {
        auto cgroup = SlotCgroup::make(tree.tree, "s000001");
        REQUIRE(succeeded(cgroup));
        CHECK(tree.tree.names() == std::set<std::string>{"s000001"});
        opensandbox::runtime::ResourceLimits limits;
        limits.cpu_cores = 0.5;
        limits.memory_bytes = 64 << 20;
        limits.pids = 17;
        REQUIRE(succeeded(cgroup->set_limits(limits)));
        for (const auto& hierarchy : tree.tree.hierarchies()) {
            if (!hierarchy.controllers.contains("pids")) continue;
            auto text = read_file(hierarchy.base / "s000001" / "pids.max");
            REQUIRE(succeeded(text));
            CHECK(*text == "17\n");
        }
        const auto again = SlotCgroup::make(tree.tree, "s000001");
        REQUIRE_FALSE(succeeded(again));
        CHECK(again.error().code() == ErrorCode::conflict);
    }
    CHECK(tree.tree.names().empty());
}

TEST_CASE("removing a slot's cgroups ends what still runs there", "[runtime][cgroup]") {
    Tree tree;
    auto cgroup = SlotCgroup::make(tree.tree, "s000002");
    REQUIRE(succeeded(cgroup));
    auto place = cgroup->unified_descriptor();
    REQUIRE(succeeded(place));
    auto child = clone_process(0, place->get());
    REQUIRE(succeeded(child));
    if (child->pid == 0) {
        while (true)
            ::pause();
    }
    REQUIRE(succeeded(cgroup->attach(child->pid)));
    // Its parent reaps it meanwhile, as a spawner's init would.
    ::signal(SIGCHLD, SIG_IGN);
    const auto removed = cgroup->remove();
    ::signal(SIGCHLD, SIG_DFL);
    CHECK(succeeded(removed));
    CHECK(::kill(child->pid, 0) < 0);
    CHECK(tree.tree.names().empty());
}
