#include "isolated_agent.hpp"

#include <catch2/catch.hpp>
#include <linux/capability.h>
#include <sys/syscall.h>

#include <unistd.h>

using namespace opensandbox::agent::testing;

namespace {

/// Takes one capability out of effect, for this process and its children to come.
class Without {
  public:
    explicit Without(int capability) {
        REQUIRE(::syscall(SYS_capget, &header_, data_) == 0);
        __user_cap_data_struct fewer[2]{data_[0], data_[1]};
        fewer[capability / 32].effective &= ~(1U << (capability % 32));
        REQUIRE(::syscall(SYS_capset, &header_, fewer) == 0);
    }
    Without(const Without&) = delete;
    Without& operator=(const Without&) = delete;
    ~Without() { ::syscall(SYS_capset, &header_, data_); }

  private:
    __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data_[2]{};
};

}  // namespace

TEST_CASE("isolated: an agent that may not make namespaces says so and refuses", "[isolated]") {
    Without admin(CAP_SYS_ADMIN);
    IsolatedAgent agent;
    Reply able = agent.agent().call("GET", "/v1/isolated/capabilities");
    REQUIRE(able.status == 200);
    CHECK(member(able.body, "available") == "false");
    CHECK(member(able.body, "message").find("CAP_SYS_ADMIN") != std::string::npos);
    CHECK(member(able.body, "commit_supported") == "false");
    const std::string some = "/v1/isolated/session/11111111-1111-1111-1111-111111111111";
    for (const auto& [method, target] :
         {std::pair<std::string, std::string>{"POST", "/v1/isolated/session"},
          {"GET", "/v1/isolated/sessions"},
          {"GET", some},
          {"DELETE", some},
          {"POST", some + "/run"},
          {"GET", some + "/diff"},
          {"POST", some + "/commit"},
          {"GET", some + "/files/info?path=/tmp"},
          {"GET", some + "/runs/11111111-1111-1111-1111-111111111111"}}) {
        INFO(method << " " << target);
        Reply reply = agent.agent().call(method, target, method == "POST" ? "{}" : "");
        CHECK(reply.status == 503);
        CHECK(member(reply.body, "code") == "NOT_SUPPORTED");
    }
    // The rest of the agent is as before.
    CHECK(exit_code(agent.agent().command(shell_request("true"))) == 0);
}

TEST_CASE("isolated: an agent that may not change users refuses others than its own",
          "[isolated]") {
    Without setuid(CAP_SETUID);
    IsolatedAgent agent;
    const std::string start = R"({"workspace":{"path":")" + agent.workspace() + R"("},)";
    CHECK(agent.create(start + R"("uid":1234})").status == 503);
    CHECK(agent.create(start + R"("uid":0,"gid":0})").status == 201);
}
