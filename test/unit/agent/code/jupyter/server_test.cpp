#include "agent/code/jupyter/message.hpp"
#include "jupyter_setup.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
using http::test::Loop;
using std::chrono::milliseconds;

TEST_CASE("Jupyter: the kernel of a language is chosen the same way every time") {
    JupyterSetup setup;
    setup.loop.run([&]() -> Awaitable<void> {
        co_await setup.start("python");
        co_await setup.start("bash");
    });
    REQUIRE(setup.jupyter.created.size() == 2);
    auto first = json::parse(setup.jupyter.created[0]);
    CHECK(first->at("kernel").at("name") == "python");
    CHECK(first->at("type") == "notebook");
    std::string path(first->at("path").as_string());
    CHECK(path.starts_with("/data/"));
    CHECK(path.size() == 6 + 32 + 6);
    CHECK(path.ends_with(".ipynb"));
    CHECK(json::parse(setup.jupyter.created[1])->at("kernel").at("name") == "bash");

    std::vector<jupyter::KernelSpec> specs{{"python3", "python"}, {"xpython", "python"}};
    CHECK(jupyter::choose_kernel(specs, "python")->name == "xpython");
    specs = {{"xpython", "python"}, {"apython", "python"}, {"python3", "python"}};
    CHECK(jupyter::choose_kernel(specs, "Python")->name == "apython");
    specs = {{"python3", "python"}, {"gonb", "go"}};
    CHECK(jupyter::choose_kernel(specs, "python")->name == "python3");
    CHECK(jupyter::choose_kernel(specs, "go")->name == "gonb");
    CHECK(jupyter::choose_kernel(specs, "gonb") == nullptr);
}

TEST_CASE("Jupyter: a language that is not installed is named with those that are") {
    JupyterSetup setup;
    setup.loop.run([&]() -> Awaitable<void> {
        auto missing = co_await setup.provider->start("cobol", "/");
        REQUIRE_FALSE(missing.has_value());
        CHECK(missing.error().code() == ErrorCode::not_found);
        CHECK(missing.error().message() ==
              "no Jupyter kernel for language cobol; the server has bash, python");
        // Installed since: the list is read again.
        setup.jupyter.specs = R"({"kernelspecs":{"cob":{"spec":{"language":"COBOL"}}}})";
        auto present = co_await setup.provider->start("cobol", "/");
        CHECK(present.has_value());
    });
}

TEST_CASE("Jupyter: sessions that an agent made are found again, others are left alone") {
    JupyterSetup setup;
    const std::string digits(32, 'a');
    setup.jupyter.sessions = {
        {"s1", R"({"id":"s1","path":"/w/)" + digits +
                   R"(.ipynb","kernel":{"id":"k1","name":"python3"}})"},
        {"s2", R"({"id":"s2","path":"/w/Thesis.ipynb","kernel":{"id":"k2","name":"python"}})"},
        {"s3", R"({"id":"s3","path":")" + digits + R"(.ipynb","kernel":{"id":"k3","name":"no"}})"},
    };
    setup.jupyter.script = echo;
    setup.loop.run([&]() -> Awaitable<void> {
        auto found = co_await setup.provider->recover();
        REQUIRE(found.has_value());
        REQUIRE(found->size() == 1);
        CHECK(found->front().id == "s1");
        CHECK(found->front().language == "python");
        auto events = co_await setup.run(found->front().kernel, "still here");
        CHECK(joined(events, "stdout") == "still here\n");
    });
}

TEST_CASE("Jupyter: a run is interrupted at the server, and shutting down ends its session") {
    JupyterSetup setup;
    bool requested = false;
    setup.jupyter.script = [&](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        auto request = co_await kernel.next();
        requested = true;
        co_await kernel.print(request.id, "running\n");
        (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        CHECK((co_await kernel->interrupt()).has_value());
        CHECK(setup.jupyter.interrupts == 0);
        bool ended = false;
        std::vector<StreamEvent> events;
        auto run = [&]() -> Awaitable<void> {
            events = co_await setup.run(kernel);
            ended = true;
        };
        net::spawn(setup.loop.executor(), run(), "run");
        while (!requested)
            co_await net::sleep_for(milliseconds(1));
        CHECK((co_await kernel->interrupt()).has_value());
        CHECK(setup.jupyter.interrupts == 1);
        CHECK((co_await kernel->shut_down()).has_value());
        CHECK(setup.jupyter.sessions.empty());
        CHECK_FALSE(kernel->alive());
        while (!ended)
            co_await net::sleep_for(milliseconds(1));
        CHECK(events.back().type == "error");
        CHECK((co_await kernel->shut_down()).has_value());
        co_await setup.run(kernel);
        CHECK(setup.failure == "the kernel was shut down");
    });
}

TEST_CASE("Jupyter: a kernel that is gone fails before anything runs") {
    JupyterSetup setup;
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        setup.jupyter.state.clear();
        co_await setup.run(kernel);
        CHECK(setup.failure == "the kernel does not exist any more");
        CHECK_FALSE(kernel->alive());
    });
}

TEST_CASE("Jupyter: a wrong token, a server that is down and a URL that cannot be used are told") {
    JupyterSetup setup;
    setup.loop.run([&]() -> Awaitable<void> {
        auto make = [&](const std::string& url, const char* token) {
            return make_jupyter_provider(setup.loop.executor(), setup.client, url, token,
                                         short_limits());
        };
        auto refused = co_await make(setup.jupyter.url(), "wrong")->start("python", "/");
        CHECK(refused.error().message() == "Jupyter answered 403 (is its token right?): Forbidden");
        auto down = co_await make("http://127.0.0.1:9/", "t")->start("python", "/");
        CHECK(down.error().code() == ErrorCode::unavailable);
        auto secure = co_await make("https://127.0.0.1:9", "t")->start("python", "/");
        CHECK(secure.error().code() == ErrorCode::unavailable);
        auto unknown = co_await make("ftp://127.0.0.1:9", "t")->start("python", "/");
        CHECK(unknown.error().code() == ErrorCode::invalid_argument);
    });
}

TEST_CASE("Jupyter: a server that is still starting is waited for") {
    Loop loop;
    http::Client client(loop.executor());
    auto listener = net::listen_tcp(loop.executor(), "127.0.0.1", 0);
    const std::uint16_t port = (*listener)->port();
    listener->reset();
    std::string url = "http://127.0.0.1:" + std::to_string(port);
    auto provider = make_jupyter_provider(loop.executor(), client, url, "secret");
    http::Server server(loop.executor(), [](http::Exchange& exchange) -> Awaitable<void> {
        co_await exchange.respond(http::json_response(200, R"({"kernelspecs":{}})"));
    });
    loop.run([&]() -> Awaitable<void> {
        auto begin = [&]() -> Awaitable<void> {
            co_await net::sleep_for(milliseconds(50));
            auto later = net::listen_tcp(loop.executor(), "127.0.0.1", port);
            server.serve(std::move(*later));
        };
        // What it cannot have yet is not waited for.
        auto found = co_await provider->recover();
        CHECK(found.error().code() == ErrorCode::unavailable);
        net::spawn(loop.executor(), begin(), "late server");
        auto started = co_await provider->start("python", "/");
        CHECK(started.error().code() == ErrorCode::not_found);
    });
}

TEST_CASE("Jupyter: kernel messages are read with and without buffers, garbage is refused") {
    const std::string text = FakeJupyter::Kernel::message("stream", "p", R"({"text":"x"})");
    auto message = jupyter::parse_message(text);
    REQUIRE(message.has_value());
    CHECK(message->type == "stream");
    CHECK(message->parent_id == "p");
    std::string binary("\0\0\0\2\0\0\0\x0c", 8);
    std::size_t end = 12 + text.size();
    for (int shift : {24, 16, 8, 0})
        binary += static_cast<char>(end >> shift);
    binary += text + "BUFFER";
    auto with_buffer = jupyter::parse_binary_message(binary);
    REQUIRE(with_buffer.has_value());
    CHECK(with_buffer->type == "stream");
    for (std::size_t size = 0; size < 12 + text.size(); ++size)
        CHECK(jupyter::parse_binary_message(std::string_view(binary).substr(0, size)).has_error());
    for (const char* bad :
         {"", "[]", "{}", "3", R"({"header":{}})", R"({"header":3,"msg_type":1})"})
        CHECK(jupyter::parse_message(bad).has_error());
    json::object content;
    CHECK(jupyter::mime_results(content).empty());
    auto request = jupyter::execute_request("id", "session", "a\"\n\xff");
    auto back = json::parse(request);
    CHECK(back->at("content").at("code") == "a\"\n\xef\xbf\xbd");
    CHECK(back->at("channel") == "shell");
}
