#include "egress/role/role.hpp"

#include "sidecar_world.hpp"

#include <boost/json.hpp>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <regex>

using namespace opensandbox;
using namespace opensandbox::egress;
using namespace opensandbox::egress::test;
using namespace opensandbox::test;

namespace {

/// The role as a process of its own, with its log in a pipe.
class RoleProcess {
  public:
    RoleProcess(const TestNamespace& box,
                std::vector<std::pair<const char*, std::string>> variables) {
        int ends[2];
        checked(::pipe2(ends, O_CLOEXEC), "pipe");
        const UniqueFd write(ends[1]);
        log_.reset(ends[0]);
        pid_ = box.run([&] {
            const pid_t child = ::fork();
            if (child == 0) {
                ::dup2(write.get(), STDOUT_FILENO);
                ::clearenv();
                for (const auto& [name, value] : variables)
                    ::setenv(name, value.c_str(), 1);
                char name[] = "egress";
                char* argv[] = {name, nullptr};
                ::_exit(run_sidecar(1, argv));
            }
            return child;
        });
        checked(pid_, "fork");
    }
    RoleProcess(const RoleProcess&) = delete;
    RoleProcess& operator=(const RoleProcess&) = delete;
    ~RoleProcess() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }

    /// The lines up to the first with a text; fewer when none comes.
    std::string read_until(const std::string& text) {
        while (said_.find(text) == std::string::npos && wait_for(log_.get(), POLLIN)) {
            char piece[4096];
            const ssize_t got = ::read(log_.get(), piece, sizeof piece);
            if (got <= 0) break;
            said_.append(piece, static_cast<std::size_t>(got));
        }
        return said_;
    }
    /// Asks it to end; its exit code.
    int end() {
        ::kill(pid_, SIGTERM);
        int status = 0;
        ::waitpid(std::exchange(pid_, 0), &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

  private:
    UniqueFd log_;
    pid_t pid_ = 0;
    std::string said_;
};

}  // namespace

TEST_CASE("the role writes lines as the contract has them and ends when it is asked to",
          "[egress]") {
    const SidecarWorld world;
    RoleProcess role(world.topology.box,
                     {{"OPENSANDBOX_EGRESS_MODE", "dns+nft"},
                      {"OPENSANDBOX_EGRESS_HTTP_ADDR", "127.0.0.1:18080"},
                      {"OPENSANDBOX_EGRESS_DNS_UPSTREAM", "127.0.0.1:5300"},
                      {"OPENSANDBOX_EGRESS_TOKEN", "s3cret-token"},
                      {"OPENSANDBOX_EGRESS_SANDBOX_ID", "box-7"},
                      {"OPENSANDBOX_EGRESS_RULES", R"({"egress":[{"target":"a.test"}]})"},
                      {"OPENSANDBOX_EGRESS_METRICS_EXTRA_ATTRS", "team=red,level=x"}});
    std::string said = role.read_until("egress control is in force");
    CHECK(connect_to(world.topology.box, "127.0.0.1", 18080) == 0);
    CHECK(world.reach() != 0);
    CHECK(role.end() == 0);
    said = role.read_until("what is refused stays refused");
    CHECK(world.reach() != 0);
    CHECK(said.find("s3cret") == std::string::npos);
    const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
    std::size_t lines = 0;
    bool configured = false;
    for (std::size_t at = 0; at < said.size();) {
        const std::size_t end = said.find('\n', at);
        const std::string line = said.substr(at, end - at);
        at = end == std::string::npos ? said.size() : end + 1;
        INFO(line);
        const boost::json::object object = boost::json::parse(line).as_object();
        CHECK(object.at("logger").as_string() == "opensandbox.egress");
        CHECK(std::regex_match(std::string(object.at("ts").as_string()), time));
        CHECK_FALSE(object.at("msg").as_string().empty());
        CHECK(object.at("level").as_string() != "x");
        // All but the first, which come before the environment was read.
        configured = configured || object.contains("team");
        if (configured) {
            CHECK(object.at("team").as_string() == "red");
            CHECK(object.at("sandbox_id").as_string() == "box-7");
        }
        ++lines;
    }
    CHECK(lines >= 4);
    CHECK(configured);
}
