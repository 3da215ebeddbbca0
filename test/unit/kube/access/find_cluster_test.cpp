#include "kube/access/find_cluster.hpp"

#include "support/catch_result.hpp"
#include "support/scratch_directory.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>

using namespace opensandbox;
using namespace opensandbox::kube;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

/// A kubeconfig of one context with the name of its cluster.
std::string config_of(const std::string& name) {
    return "current-context: " + name + "\nclusters: [{name: " + name +
           ", cluster: {server: 'https://" + name + "', certificate-authority: ca.pem}}]\n" +
           "contexts: [{name: " + name + ", context: {cluster: " + name + "}}]\n";
}

/// A machine with a home of its own, which is a pod after become_pod().
struct Machine {
    Machine() {
        variables["HOME"] = home.string();
        choice.service_account = scratch.path / "account";
        choice.variable = [this](const std::string& name) -> std::optional<std::string> {
            const auto found = variables.find(name);
            if (found == variables.end()) return std::nullopt;
            return found->second;
        };
    }
    void become_pod(const std::string& host = "10.96.0.1") {
        variables["KUBERNETES_SERVICE_HOST"] = host;
        variables["KUBERNETES_SERVICE_PORT"] = "443";
        write(choice.service_account / "token", "a-token");
        write(choice.service_account / "namespace", "work\n");
    }
    void write_home() const { write(home / ".kube/config", config_of("home")); }
    [[nodiscard]] std::string server() const {
        auto cluster = find_cluster(choice);
        REQUIRE(cluster);
        return cluster->server;
    }
    [[nodiscard]] Error refusal() const {
        auto cluster = find_cluster(choice);
        REQUIRE_FALSE(cluster);
        return cluster.error();
    }

    test_support::ScratchDirectory scratch;
    std::filesystem::path home = scratch.path / "home";
    std::map<std::string, std::string> variables;
    ClusterChoice choice;
};

}  // namespace

TEST_CASE("a kubeconfig that is named wins over all others") {
    Machine machine;
    machine.become_pod();
    machine.write_home();
    write(machine.scratch.path / "listed", config_of("listed"));
    machine.variables["KUBECONFIG"] = machine.scratch.path / "listed";
    write(machine.scratch.path / "named", config_of("named"));
    machine.choice.kubeconfig = machine.scratch.path / "named";
    auto cluster = find_cluster(machine.choice);
    REQUIRE(cluster);
    CHECK(cluster->server == "https://named");
    CHECK(cluster->tls.ca_file == machine.scratch.path / "ca.pem");
}

TEST_CASE("a kubeconfig that is named and not there is an error that names it") {
    Machine machine;
    machine.become_pod();
    machine.write_home();
    machine.choice.kubeconfig = machine.scratch.path / "missing";
    const Error error = machine.refusal();
    CHECK(error.code() == ErrorCode::not_found);
    CHECK(error.message().find(machine.choice.kubeconfig.string()) != std::string::npos);
}

TEST_CASE("the files of KUBECONFIG are one, those that are not there left out") {
    Machine machine;
    machine.become_pod();
    machine.write_home();
    write(machine.scratch.path / "one", config_of("one"));
    write(machine.scratch.path / "two", config_of("two"));
    machine.variables["KUBECONFIG"] = ":" + (machine.scratch.path / "missing").string() + ":" +
                                      (machine.scratch.path / "one").string() +
                                      "::" + (machine.scratch.path / "two").string();
    CHECK(machine.server() == "https://one");
    machine.choice.context = "two";
    CHECK(machine.server() == "https://two");
    machine.choice.context = "home";
    CHECK(machine.refusal().code() == ErrorCode::not_found);
}

TEST_CASE("a pod finds the cluster that it runs in before the file of its home") {
    Machine machine;
    machine.become_pod();
    machine.write_home();
    auto cluster = find_cluster(machine.choice);
    REQUIRE(cluster);
    CHECK(cluster->server == "https://10.96.0.1:443");
    CHECK(cluster->name_space == "work");
    CHECK(cluster->tls.ca_file == machine.choice.service_account / "ca.crt");
    CHECK(cluster->token_file == machine.choice.service_account / "token");
    CHECK(cluster->token.empty());
    std::filesystem::remove(machine.choice.service_account / "namespace");
    CHECK(find_cluster(machine.choice)->name_space == "default");
    machine.become_pod("fd00::1");
    CHECK(machine.server() == "https://[fd00::1]:443");
}

TEST_CASE("the file of the home counts where this is no pod, or a context of it is chosen") {
    Machine machine;
    machine.become_pod();
    machine.write_home();
    SECTION("no host") {
        machine.variables.erase("KUBERNETES_SERVICE_HOST");
    }
    SECTION("no port") {
        machine.variables["KUBERNETES_SERVICE_PORT"] = "";
    }
    SECTION("no token") {
        std::filesystem::remove(machine.choice.service_account / "token");
    }
    SECTION("a context") {
        machine.choice.context = "home";
    }
    CHECK(machine.server() == "https://home");
}

TEST_CASE("where no cluster is named, it is said where was looked") {
    Machine machine;
    Error error = machine.refusal();
    CHECK(error.code() == ErrorCode::not_found);
    CHECK(error.message() == "no cluster is named: there is no kubeconfig in " +
                                 (machine.home / ".kube/config").string() +
                                 ", and this is no pod with a service account");
    // A list that leads nowhere must not lead to another cluster.
    machine.write_home();
    machine.variables["KUBECONFIG"] = "/nonexistent/config";
    error = machine.refusal();
    CHECK(error.code() == ErrorCode::not_found);
    CHECK(error.message().find("KUBECONFIG (/nonexistent/config)") != std::string::npos);
    machine.variables.clear();
    CHECK(machine.refusal().message().find("~/.kube/config") != std::string::npos);
}

TEST_CASE("a kubeconfig above 1 MiB is refused by its name, wherever it is named") {
    Machine machine;
    const std::filesystem::path large = machine.home / ".kube/config";
    write(large, config_of("home") + std::string(std::size_t{1024} * 1024, '#'));
    SECTION("by a choice") {
        machine.choice.kubeconfig = large;
    }
    SECTION("by KUBECONFIG") {
        machine.variables["KUBECONFIG"] = large;
    }
    SECTION("by the home") {}
    const Error error = machine.refusal();
    CHECK(error.code() == ErrorCode::too_large);
    CHECK(error.message().find(large.string()) != std::string::npos);
}

TEST_CASE("a kubeconfig of exactly 1 MiB is read") {
    Machine machine;
    std::string text = config_of("home") + "#";
    text.resize(std::size_t{1024} * 1024, ' ');
    write(machine.home / ".kube/config", text);
    CHECK(machine.server() == "https://home");
}

TEST_CASE("a folder in place of a kubeconfig is an error that names it") {
    Machine machine;
    machine.write_home();
    machine.variables["KUBECONFIG"] = machine.home;
    CHECK(machine.refusal().message().find(machine.home.string()) != std::string::npos);
}
