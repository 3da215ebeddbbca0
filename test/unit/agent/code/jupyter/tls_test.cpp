#include "jupyter_setup.hpp"
#include "support/scratch_directory.hpp"
#include "support/tls_server.hpp"

#include <cstdlib>
#include <optional>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
using test_support::Identity;
using test_support::issue;
using test_support::TlsServer;

namespace {

/// An environment variable that is as before after the test.
class ScopedVariable {
  public:
    ScopedVariable(const char* name, const std::string& value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before;
        ::setenv(name, value.c_str(), 1);
    }
    ~ScopedVariable() {
        if (before_) ::setenv(name_, before_->c_str(), 1);
        if (!before_) ::unsetenv(name_);
    }
    ScopedVariable(const ScopedVariable&) = delete;
    ScopedVariable& operator=(const ScopedVariable&) = delete;

  private:
    const char* name_;
    std::optional<std::string> before_;
};

std::uint16_t port_of(const std::string& url) {
    std::size_t colon = url.rfind(':');
    return static_cast<std::uint16_t>(std::stoi(url.substr(colon + 1)));
}

}  // namespace

TEST_CASE("Jupyter: a server behind https is used like any other, if its certificate holds") {
    test_support::ScratchDirectory directory;
    Identity authority = issue("authority", "", nullptr);
    Identity identity = issue("jupyter", "IP:127.0.0.1", &authority);
    authority.write_certificate(directory.path / "ca.pem");
    JupyterSetup setup;
    setup.jupyter.script = echo;
    std::uint16_t backend = port_of(setup.jupyter.url());
    TlsServer front(identity, test_support::forward_to(
                                  [backend] { return test_support::dial_loopback(backend); }));
    std::string url = "https://127.0.0.1:" + std::to_string(front.port);
    auto secured = [&] {
        return make_jupyter_provider(setup.loop.executor(), setup.client, url, "secret",
                                     short_limits());
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto stranger = secured();
        auto refused = co_await stranger->start("python", "/data");
        REQUIRE_FALSE(refused.has_value());
        CHECK(refused.error().message().find("certificate") != std::string::npos);

        ScopedVariable trust("SSL_CERT_FILE", directory.path / "ca.pem");
        setup.provider = secured();
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(joined(events, "stdout") == "x\n");
        CHECK(setup.failure.empty());
    });
}
