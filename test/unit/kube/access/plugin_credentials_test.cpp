#include "base/scope_exit.hpp"
#include "kube/access/credentials.hpp"
#include "unit/kube/access/desk.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::kube;
using namespace std::chrono_literals;
using testing::Desk;
using testing::text_of;
namespace {

/// A plugin that answers when the file "go" is there, and fails when it does not come.
const std::string waiting_plugin =
    "n=0; while [ ! -e go ]; do n=$((n + 1)); [ $n -lt 500 ] || exit 1; sleep 0.02; done; "
    R"(echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
    R"("status":{"token":"t"}}')";

}  // namespace

TEST_CASE("a plugin is called as the kubeconfig says, and told of the cluster") {
    Desk desk;
    desk.use_plugin(
        "printf '%s' \"$1 $2 $REGION\" > called; printf '%s' \"$KUBERNETES_EXEC_INFO\" > told; "
        "exit 3");
    desk.cluster.plugin->arguments = {"get", "a token"};
    desk.cluster.plugin->environment = {{"REGION", "eu"}};
    desk.cluster.plugin->wants_cluster = true;
    desk.cluster.tls.ca_file = desk.scratch.path / "ca.pem";
    SECTION("with the authorities of its file") {
        desk.write("ca.pem", "the authority");
        CHECK(desk.refusal() == "credential plugin " + desk.cluster.plugin->command + ": " +
                                    desk.cluster.plugin->command + ": exit code 3");
        CHECK(text_of(desk.scratch.path / "called") == "get a token eu");
        Cluster told = desk.cluster;
        told.tls.ca_pem = "the authority";
        CHECK(text_of(desk.scratch.path / "told") == plugin_question(*told.plugin, told));
    }
    SECTION("unless those are not there") {
        CHECK(desk.refusal().find(desk.cluster.tls.ca_file) != std::string::npos);
        CHECK(desk.runs() == 0);
    }
}

TEST_CASE("a plugin's answer is kept until a minute before it expires") {
    Desk desk;
    desk.use_answering_plugin();
    desk.answer("first", 1h);
    CHECK(desk.authorization() == "Bearer first");
    desk.answer("second", 2h);
    desk.time += 59min - 1s;
    CHECK(desk.authorization() == "Bearer first");
    CHECK(desk.runs() == 1);
    desk.time += 1s;
    CHECK(desk.authorization() == "Bearer second");
    CHECK(desk.runs() == 2);
}

TEST_CASE("a plugin's answer that lives shorter than a minute is kept until it expires") {
    Desk desk;
    desk.use_answering_plugin();
    desk.answer("first", 40s);
    CHECK(desk.authorization() == "Bearer first");
    desk.answer("second", 1h);
    desk.time += 39s;
    CHECK(desk.authorization() == "Bearer first");
    desk.time += 1s;
    CHECK(desk.authorization() == "Bearer second");
}

TEST_CASE("a plugin whose answers have expired already is not asked by every caller") {
    Desk desk;
    desk.use_answering_plugin();
    desk.answer("old", -1h);
    // The server judges: our clock may be wrong.
    CHECK(desk.authorization() == "Bearer old");
    desk.time += 9s;
    CHECK(desk.authorization() == "Bearer old");
    CHECK(desk.runs() == 1);
    desk.time += 1s;
    CHECK(desk.authorization() == "Bearer old");
    CHECK(desk.runs() == 2);
}

TEST_CASE("a plugin's answer without an end is kept until it is refused") {
    Desk desk;
    desk.use_answering_plugin();
    desk.write("status", R"({"token":"first"})");
    CHECK(desk.authorization() == "Bearer first");
    desk.write("status", R"({"token":"second"})");
    desk.time += 24h * 365;
    CHECK(desk.authorization() == "Bearer first");
    CHECK(desk.credentials().refused());
    CHECK(desk.authorization() == "Bearer second");
    CHECK(desk.runs() == 2);
}

TEST_CASE("a plugin is asked at most once in ten seconds, however often it is refused") {
    Desk desk;
    desk.use_answering_plugin();
    desk.write("status", R"({"token":"first"})");
    CHECK(desk.authorization() == "Bearer first");
    desk.write("status", R"({"token":"second"})");
    desk.time += 9s;
    CHECK_FALSE(desk.credentials().refused());
    CHECK(desk.authorization() == "Bearer first");
    CHECK(desk.runs() == 1);
    // The refusal is not forgotten.
    desk.time += 1s;
    CHECK(desk.authorization() == "Bearer second");
    CHECK_FALSE(desk.credentials().refused());
    CHECK(desk.authorization() == "Bearer second");
    CHECK(desk.runs() == 2);
}

TEST_CASE("a plugin that fails is asked again after ten seconds, and its error is told till then") {
    Desk desk;
    desk.use_plugin("echo secret; exit 1");
    const std::string refusal = desk.refusal();
    CHECK(refusal.find("exit code 1") != std::string::npos);
    CHECK(refusal.find("secret") == std::string::npos);
    desk.time += 9s;
    CHECK(desk.refusal() == refusal);
    CHECK_FALSE(desk.credentials().refused());
    CHECK(desk.refusal() == refusal);
    CHECK(desk.runs() == 1);
    desk.use_answering_plugin();
    desk.answer("good", 1h);
    desk.time += 1s;
    CHECK(desk.authorization() == "Bearer good");
}

TEST_CASE("a plugin that fails leaves what it gave before until that expires") {
    Desk desk;
    desk.use_answering_plugin();
    desk.answer("first", 1h);
    CHECK(desk.authorization() == "Bearer first");
    desk.write("status", "{}");
    desk.time += 59min;
    CHECK(desk.authorization() == "Bearer first");
    CHECK(desk.runs() == 2);
    desk.time += 1min;
    CHECK(desk.refusal() == "credential plugin " + desk.cluster.plugin->command +
                                ": status: has neither a token nor a certificate");
    CHECK(desk.runs() == 3);
    desk.answer("second", 1h);
    desk.time += 10s;
    CHECK(desk.authorization() == "Bearer second");
}

TEST_CASE("a plugin that is not there is an error that says how to install it") {
    Desk desk;
    CredentialPlugin& plugin = desk.cluster.plugin.emplace();
    plugin.command = "opensandbox-no-such-program";
    SECTION("with a hint") {
        plugin.install_hint = "get it at login.example";
        CHECK_THAT(desk.refusal(), Catch::EndsWith("; get it at login.example"));
    }
    SECTION("without one") {}
    auto access = desk.current();
    REQUIRE_FALSE(access);
    CHECK(access.error().code() == ErrorCode::not_found);
    CHECK_THAT(access.error().message(),
               Catch::StartsWith("credential plugin opensandbox-no-such-program: "));
}

TEST_CASE("a TLS client is made anew when the plugin's certificate has changed, and only then") {
    Desk desk;
    desk.cluster.tls.ca_file = "/ca.pem";
    desk.cluster.tls.cert_file = "/cert.pem";
    desk.cluster.tls.key_file = "/key.pem";
    desk.use_answering_plugin();
    const auto renewed = [&](const std::string& status) {
        desk.write("status", status);
        desk.time += 10s;
        desk.credentials().refused();
        auto access = desk.current();
        REQUIRE(access);
        return *access;
    };
    const Access first = renewed(R"({"clientCertificateData":"c1","clientKeyData":"k1"})");
    CHECK(first.authorization.empty());
    net::TlsSettings wanted;
    wanted.ca_file = "/ca.pem";
    wanted.cert_pem = "c1";
    wanted.key_pem = "k1";
    CHECK(first.tls->settings() == wanted);
    const Access same =
        renewed(R"({"clientCertificateData":"c1","clientKeyData":"k1","token":"t"})");
    CHECK(same.authorization == "Bearer t");
    CHECK(same.tls == first.tls);
    const Access other = renewed(R"({"clientCertificateData":"c2","clientKeyData":"k2"})");
    CHECK(other.tls != first.tls);
    CHECK(other.tls->settings().cert_pem == "c2");
    CHECK(first.tls->settings().cert_pem == "c1");
    const Access token = renewed(R"({"token":"t"})");
    CHECK(token.tls->settings() == desk.cluster.tls);
    CHECK(desk.runs() == 4);
}

TEST_CASE("callers at the same time wait for one run of the plugin, however it ends") {
    Desk desk;
    const bool good = GENERATE(true, false);
    desk.use_answering_plugin();
    desk.write("status", good ? R"({"token":"t"})" : "{}");
    constexpr int kCallers = 8;
    int served = 0;
    int ended = 0;
    net::Event all(desk.loop.executor());
    const auto call = [&]() -> Awaitable<void> {
        auto access = co_await desk.credentials().current();
        if (access && access->authorization == "Bearer t") ++served;
        if (++ended == kCallers) all.notify();
    };
    desk.loop.run([&]() -> Awaitable<void> {
        for (int caller = 0; caller < kCallers; ++caller)
            net::spawn(desk.loop.executor(), call(), "caller");
        co_await all.wait();
    });
    CHECK(served == (good ? kCallers : 0));
    CHECK(desk.runs() == 1);
}

TEST_CASE("the event loop goes on while a plugin runs") {
    Desk desk;
    desk.use_plugin(waiting_plugin);
    net::spawn(
        desk.loop.executor(),
        [](const Desk* at) -> Awaitable<void> {
            while (at->runs() == 0)
                co_await net::sleep_for(2ms);
            at->write("go", "");
        }(&desk),
        "go");
    CHECK(desk.authorization() == "Bearer t");
}

TEST_CASE("a caller that is broken off while a plugin runs leaves the next one its turn") {
    Desk desk;
    desk.use_plugin(waiting_plugin);
    desk.loop.run([&]() -> Awaitable<void> {
        bool broken = false;
        const auto call = [&]() -> Awaitable<void> {
            const ScopeExit end([&] { broken = true; });
            (void)co_await desk.credentials().current();
        };
        auto signal = net::spawn_cancellable(desk.loop.executor(), call(), "caller");
        while (desk.runs() == 0)
            co_await net::sleep_for(2ms);
        signal->emit(asio::cancellation_type::terminal);
        desk.write("go", "");
        auto access = co_await desk.credentials().current();
        REQUIRE(access);
        CHECK(access->authorization == "Bearer t");
        CHECK(broken);
    });
}
