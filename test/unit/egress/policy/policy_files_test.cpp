#include "egress/policy/policy_files.hpp"

#include "unit/egress/policy/policies.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

using namespace opensandbox::egress;
namespace fs = std::filesystem;

namespace {

/// A directory that goes with the test.
class Directory {
  public:
    Directory() {
        std::string name = (fs::temp_directory_path() / "egress-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    ~Directory() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    [[nodiscard]] const fs::path& path() const { return path_; }
    [[nodiscard]] fs::path write(std::string_view name, std::string_view text) const {
        std::ofstream(path_ / name, std::ios::binary) << text;
        return path_ / name;
    }

  private:
    fs::path path_;
};

std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

mode_t mode(const fs::path& path) {
    struct stat info{};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("overlay files are read, missing ones are empty") {
    const Directory directory;
    CHECK(read_overlay(directory.path()).value().deny.empty());
    CHECK(read_log_skip(directory.path()).value().size() == 0);
    CHECK(read_overlay(directory.path() / "none").value().allow.empty());
    (void)directory.write(kDenyFile, "a.example\n");
    (void)directory.write(kAllowFile, "b.example\n10.0.0.0/8\n");
    (void)directory.write(kLogSkipFile, "c.example\n");
    const Overlay overlay = read_overlay(directory.path()).value();
    CHECK(test::texts(overlay.deny) == "deny a.example");
    CHECK(test::texts(overlay.allow) == "allow b.example, allow 10.0.0.0/8");
    CHECK(read_log_skip(directory.path()).value().skips("c.example"));
    (void)directory.write(kDenyFile, "a.example\nb..c\n");
    CHECK(read_overlay(directory.path()).error().message().starts_with("deny.always line 2: "));
}

TEST_CASE("the stamp of the overlay changes with its files") {
    const Directory directory;
    const OverlayStamp none = stamp_overlay(directory.path());
    CHECK(none == stamp_overlay(directory.path()));
    const fs::path file = directory.write(kAllowFile, "b.example\n");
    const OverlayStamp one = stamp_overlay(directory.path());
    CHECK(one != none);
    fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(2));
    CHECK(stamp_overlay(directory.path()) != one);
    fs::remove(file);
    CHECK(stamp_overlay(directory.path()) == none);
}

TEST_CASE("the policy begins with the file, then the environment, then deny-all") {
    const Directory directory;
    const std::string rules = R"({"egress":[{"action":"allow","target":"env.example"}]})";
    const auto from = [&](const std::string& file) { return initial_policy(file, rules).value(); };
    CHECK(from("").source == "environment");
    CHECK(from("").warnings.empty());
    CHECK(initial_policy("", "").value().source == "default");
    CHECK(initial_policy("", "").value().policy.rules.empty());

    const fs::path good =
        directory.write("policy", R"({"egress":[{"action":"allow","target":"file.example"}]})");
    CHECK(from(good.string()).source == "file");
    CHECK(test::texts(from(good.string()).policy.rules) == "allow file.example");

    for (const fs::path& bad : {directory.path() / "missing", directory.write("empty", " \n"),
                                directory.write("broken", "{"), directory.path()}) {
        INFO(bad.string());
        const InitialPolicy initial = from(bad.string());
        CHECK(initial.source == "environment");
        REQUIRE(initial.warnings.size() == 1);
        CHECK_THAT(initial.warnings.front(), Catch::Contains(bad.string() + " is not used: "));
    }
    CHECK_THAT(initial_policy("", "{").error().message(),
               Catch::StartsWith("OPENSANDBOX_EGRESS_RULES: JSON"));
}

TEST_CASE("a written policy replaces the file and keeps its mode") {
    const Directory directory;
    const fs::path file = directory.path() / "policy.json";
    REQUIRE(write_policy(file, test::policy({"allow a.example"})).has_value());
    CHECK(mode(file) == 0600);
    CHECK(content(file) == to_saved_json(test::policy({"allow a.example"})));
    fs::permissions(file, fs::perms(0644));
    REQUIRE(write_policy(file, Policy()).has_value());
    CHECK(mode(file) == 0644);
    CHECK(content(file) == to_saved_json(Policy()));
    CHECK(std::distance(fs::directory_iterator(directory.path()), {}) == 1);
    CHECK_FALSE(write_policy(directory.path() / "no" / "policy.json", Policy()).has_value());
}
