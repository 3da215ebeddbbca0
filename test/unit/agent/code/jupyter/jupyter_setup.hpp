#pragma once

#include "agent/code/jupyter/provider.hpp"
#include "fake_jupyter.hpp"
#include "support/http_client_fixture.hpp"
#include "unit/agent/agent_process.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace opensandbox::agent::testing {

inline jupyter::Limits short_limits() {
    jupyter::Limits limits;
    limits.startup = std::chrono::milliseconds(0);
    limits.lost_reply = std::chrono::milliseconds(100);
    limits.check = std::chrono::milliseconds(100);
    return limits;
}

/// A fake Jupyter server, a provider of its kernels, and a server that streams runs.
struct JupyterSetup {
    explicit JupyterSetup(jupyter::Limits limits = short_limits())
        : jupyter(loop),
          client(loop.executor()),
          provider(make_jupyter_provider(loop.executor(), client, jupyter.url(), "secret", limits)),
          streams(loop, [this](http::Exchange& exchange) { return serve(exchange); }) {}

    Awaitable<std::shared_ptr<Kernel>> start(std::string language = "python") {
        auto started = co_await provider->start(std::move(language), "/data");
        if (!started) throw std::runtime_error(started.error().message());
        id = started->id;
        co_return started->kernel;
    }

    /// Runs code and returns the events of its stream.
    Awaitable<std::vector<StreamEvent>> run(std::shared_ptr<Kernel> with, std::string code = "x") {
        kernel = std::move(with);
        http::ClientRequest request("POST", "/");
        request.content = std::move(code);
        auto answer =
            co_await http::test::fetch(client, http::test::local(streams.port), std::move(request));
        raw = answer.body;
        co_return parse_events(answer.body);
    }

    http::test::Loop loop;
    FakeJupyter jupyter;
    http::Client client;
    std::unique_ptr<KernelProvider> provider;
    std::string id;
    std::shared_ptr<Kernel> kernel;
    std::string failure;  ///< of the last run
    std::string raw;      ///< its stream

  private:
    Awaitable<void> serve(http::Exchange& exchange) {
        auto code = co_await http::read_all(exchange.body(), 1'000'000);
        auto pump = std::make_shared<EventPump>(loop.executor(), id, LineForm::exact);
        net::spawn(loop.executor(), run_to_end(*code, pump), "run");
        co_await EventPump::stream(pump, exchange);
    }
    Awaitable<void> run_to_end(std::string code, std::shared_ptr<EventPump> pump) {
        failure.clear();
        Status ended = co_await kernel->run(std::move(code), pump);
        if (ended) co_return;
        failure = ended.error().message();
        pump->end({"Unrun", failure, {}});
    }

  public:
    http::test::TestServer streams;
};

/// Answers every request at once with what it printed.
inline Awaitable<void> echo(FakeJupyter::Kernel& kernel) {
    while (true) {
        auto request = co_await kernel.next();
        if (request.id.empty()) co_return;
        co_await kernel.busy(request.id);
        co_await kernel.print(request.id, request.code + "\n");
        co_await kernel.reply(request.id);
        co_await kernel.idle(request.id);
    }
}

}  // namespace opensandbox::agent::testing
