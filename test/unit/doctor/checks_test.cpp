#include "doctor/checks.hpp"

#include "doctor/probe.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <unistd.h>

using namespace opensandbox;
using namespace opensandbox::doctor;

namespace {

/// A host of root's that has everything.
HostFacts complete() {
    HostFacts facts;
    facts.root = true;
    facts.user = "root";
    facts.kernel = "6.18.4";
    facts.max_user_namespaces = 95'000;
    facts.cgroups.v1 = true;
    facts.cgroups.controllers = {"cpu", "memory", "pids"};
    facts.cgroups.freezer = true;
    facts.network.forwarding = true;
    facts.network.ipv6 = facts.network.forwarding6 = facts.network.way_out6 = true;
    facts.user_network = "/usr/bin/pasta";
    facts.seccomp = true;
    facts.landlock = 7;
    facts.fuse = facts.tun = true;
    facts.open_files = 20'000;
    facts.runsc = "/usr/bin/runsc";
    facts.bucket_tools = {"/usr/bin/ossfs2"};
    facts.state.path = facts.state.probed = "/var/lib/opensandbox";
    facts.state.writable = facts.state.reflink = true;
    facts.state.type = "xfs";
    facts.state.free_bytes = facts.state.total_bytes = 50ULL << 30;
    return facts;
}

/// The same of an ordinary user who may do what can be allowed.
HostFacts ordinary() {
    HostFacts facts = complete();
    facts.root = false;
    facts.user = "ada";
    facts.subordinate_uids = facts.subordinate_gids = 65'536;
    facts.id_map_tools = true;
    facts.cgroups.controllers.clear();
    facts.cgroups.freezer = false;
    return facts;
}

Finding finding_of(const HostFacts& facts, const std::string& name) {
    const auto findings = examine(facts);
    const auto found = std::ranges::find(findings, name, &Finding::name);
    REQUIRE(found != findings.end());
    return *found;
}

bool can_run(const HostFacts& facts) {
    return native_can_run(examine(facts));
}

}  // namespace

TEST_CASE("doctor: a host that has everything is found good", "[doctor]") {
    const auto findings = examine(complete());
    CHECK(std::ranges::all_of(findings, [](const Finding& f) { return f.level == Level::good; }));
    CHECK(native_can_run(findings));
    CHECK(findings.size() == 20);
}

TEST_CASE("doctor: a host that does not forward IPv6 is told what turns it on", "[doctor]") {
    HostFacts facts = complete();
    facts.network.forwarding6 = false;
    CHECK(finding_of(facts, "IPv6").level == Level::off);
    CHECK(finding_of(facts, "IPv6").found.find("net.ipv6.conf.all.forwarding") !=
          std::string::npos);
    CHECK(can_run(facts));
    facts.network.ipv6 = false;
    CHECK(finding_of(facts, "IPv6").found.find("forwarding") == std::string::npos);
}

TEST_CASE("doctor: what no sandbox can do without blocks", "[doctor]") {
    HostFacts facts = complete();
    SECTION("an old kernel") {
        facts.kernel = "6.1.0-18-amd64";
        CHECK(finding_of(facts, "kernel").follows.find("6.13") != std::string::npos);
    }
    SECTION("a kernel without a kind of namespace") {
        facts.missing_namespaces = {"user", "cgroup"};
        CHECK(finding_of(facts, "namespaces").found == "without user, cgroup");
    }
    SECTION("user namespaces switched off") {
        facts.user_namespace_problem = "unshare a user namespace: No space left on device";
    }
    SECTION("no system call filters") {
        facts.seccomp = false;
    }
    SECTION("no firewall of root's") {
        facts.network.firewall_problem = "no nftables";
    }
    SECTION("forwarding that is off and cannot be turned on") {
        facts.network.forwarding = false;
        facts.network.forwarding_fixed = true;
        CHECK(finding_of(facts, "outbound network").follows.find("on the host") !=
              std::string::npos);
    }
    SECTION("a state directory that cannot be written") {
        facts.state.writable = false;
    }
    CHECK_FALSE(can_run(facts));
}

TEST_CASE("doctor: kernels are compared by number", "[doctor]") {
    HostFacts facts = complete();
    for (const char* release : {"6.13", "6.13.0-rc1", "6.101.1", "7.0.0"}) {
        facts.kernel = release;
        CHECK(check_kernel(facts).level == Level::good);
    }
    for (const char* release : {"6.12.9", "5.15.0", "nonsense", ""}) {
        facts.kernel = release;
        CHECK(check_kernel(facts).level == Level::blocking);
    }
}

TEST_CASE("doctor: what only limits is said to be off, with what follows", "[doctor]") {
    HostFacts facts = complete();
    SECTION("controllers") {
        facts.cgroups.controllers = {"pids"};
        CHECK(finding_of(facts, "cgroups").follows == "limits of cpu, memory are off");
    }
    SECTION("an overlay below the state directory") {
        facts.state.type = "overlay";
        facts.state.overlay_problem = facts.state.shift_problem = "overlay create: EINVAL";
        CHECK(finding_of(facts, "overlayfs").level == Level::off);
        CHECK(finding_of(facts, "overlayfs").follows.find("in memory") != std::string::npos);
        CHECK(finding_of(facts, "shifted ids").level == Level::off);
        CHECK(finding_of(facts, "state directory").level == Level::off);
    }
    SECTION("Docker's firewall") {
        facts.network.forward_dropped = true;
        CHECK(finding_of(facts, "outbound network").level == Level::off);
    }
    SECTION("few descriptors") {
        facts.open_files = 1024;
        CHECK(finding_of(facts, "open files").follows.find("184 sandboxes") != std::string::npos);
    }
    SECTION("a full disk") {
        facts.state.free_bytes = 1 << 20;
        CHECK(finding_of(facts, "disk").level == Level::off);
    }
    SECTION("no landlock, no tun") {
        facts.landlock = 0;
        facts.tun = false;
        CHECK(finding_of(facts, "landlock").level == Level::off);
        CHECK(finding_of(facts, "devices").found == "cannot open /dev/net/tun");
    }
    CHECK(can_run(facts));
}

TEST_CASE("doctor: what buckets need is named", "[doctor]") {
    HostFacts facts = complete();
    CHECK(finding_of(facts, "buckets").found == "/usr/bin/ossfs2");
    facts.bucket_tools.clear();
    CHECK(finding_of(facts, "buckets").follows == "volumes of buckets are not possible");
    CHECK(can_run(facts));
    CHECK(finding_of(ordinary(), "buckets").level == Level::off);
}

TEST_CASE("doctor: gVisor is told to be possible only where it is", "[doctor]") {
    HostFacts facts = complete();
    CHECK_THAT(finding_of(facts, "gVisor").follows, Catch::Contains("run under it"));
    CHECK_THAT(finding_of(ordinary(), "gVisor").follows, Catch::Contains("root's server only"));
    facts.runsc_problem = "/usr/bin/runsc is linked dynamically";
    CHECK(finding_of(facts, "gVisor").level == Level::off);
    CHECK_THAT(finding_of(facts, "gVisor").follows, Catch::Contains("not possible"));
    facts.runsc.clear();
    facts.runsc_problem.clear();
    CHECK(finding_of(facts, "gVisor").level == Level::good);
    CHECK_THAT(finding_of(facts, "gVisor").follows, Catch::Contains("not possible"));
    CHECK(can_run(facts));
}

TEST_CASE("doctor: an ordinary user needs subordinate ids and their tools", "[doctor]") {
    HostFacts facts = ordinary();
    CHECK(can_run(facts));
    CHECK(finding_of(facts, "shifted ids").level == Level::off);
    CHECK(finding_of(facts, "outbound network").level == Level::good);
    CHECK(finding_of(facts, "IPv6").level == Level::good);
    CHECK(finding_of(facts, "cgroups").follows.find("rlimits") != std::string::npos);
    CHECK(finding_of(facts, "pause").found.find("signals") != std::string::npos);

    facts.network.way_out6 = false;
    CHECK(finding_of(facts, "outbound network").level == Level::good);
    CHECK(finding_of(facts, "IPv6").level == Level::off);
    facts.user_network_problem = "pasta is missing: install passt";
    CHECK(can_run(facts));
    CHECK(finding_of(facts, "outbound network").level == Level::off);
    CHECK_THAT(finding_of(facts, "outbound network").found, Catch::Contains("install passt"));
    CHECK(finding_of(facts, "IPv6").level == Level::off);

    facts.id_map_tools = false;
    CHECK_FALSE(can_run(facts));
    CHECK(finding_of(facts, "subordinate ids").follows.find("uidmap") != std::string::npos);
    facts = ordinary();
    facts.subordinate_gids = 0;
    CHECK_FALSE(can_run(facts));
    CHECK(finding_of(facts, "subordinate ids").follows.find("ada") != std::string::npos);
    facts = ordinary();
    facts.subordinate_uids = 1000;
    CHECK(finding_of(facts, "subordinate ids").level == Level::off);
    CHECK(can_run(facts));
    facts = ordinary();
    facts.state.overlay_problem = "fsopen overlay: EPERM";
    CHECK_FALSE(can_run(facts));
}

TEST_CASE("doctor: the mount of a path is the longest, and of two the later", "[doctor]") {
    const std::string mounts =
        "/dev/vda / ext4 rw,relatime 0 0\n"
        "/dev/vdb /var/lib xfs rw,prjquota 0 0\n"
        "tmpfs /var/library tmpfs rw 0 0\n"
        "overlay /srv overlay rw 0 0\n"
        "/dev/vdc /srv btrfs rw 0 0\n"
        "short\n";
    CHECK(mount_of(mounts, "/home/ada").type == "ext4");
    CHECK(mount_of(mounts, "/var/lib/opensandbox").type == "xfs");
    CHECK(mount_of(mounts, "/var/lib/opensandbox").quota);
    CHECK(mount_of(mounts, "/var/lib").type == "xfs");
    CHECK(mount_of(mounts, "/var/library/x").type == "tmpfs");
    CHECK(mount_of(mounts, "/srv/state").type == "btrfs");
    CHECK_FALSE(mount_of(mounts, "/srv/state").quota);
    CHECK(mount_of("", "/x").type.empty());
}

TEST_CASE("doctor: an attempt in a child brings back its reason, also when it dies", "[doctor]") {
    CHECK(in_child([] { return Status(); }).has_value());
    const auto refused = in_child([] { return Status(Error(ErrorCode::io, "refused")); });
    REQUIRE(refused.has_error());
    CHECK(refused.error().message() == "refused");
    const auto died = in_child([]() -> Status { ::_exit(3); });
    REQUIRE(died.has_error());
    CHECK_FALSE(died.error().message().empty());
}

TEST_CASE("doctor: this host is looked at and left as it was", "[doctor]") {
    const std::filesystem::path state = "/tmp/opensandbox-doctor-absent/state";
    const HostFacts facts = probe_host(state);
    CHECK_FALSE(facts.kernel.empty());
    CHECK_FALSE(facts.user.empty());
    CHECK(facts.state.path == state);
    CHECK(facts.state.probed == "/tmp");
    CHECK(facts.state.total_bytes > 0);
    CHECK(facts.seccomp);
    CHECK_FALSE(std::filesystem::exists(state));
    for (const auto& entry : std::filesystem::directory_iterator("/tmp"))
        CHECK(entry.path().filename().string().find(".opensandbox-doctor-") == std::string::npos);
}
