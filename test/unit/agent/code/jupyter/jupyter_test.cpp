#include "jupyter_setup.hpp"
#include "unit/agent/printable.hpp"

#include <catch2/catch.hpp>

using namespace opensandbox;
using namespace opensandbox::agent;
using namespace opensandbox::agent::testing;
using std::chrono::milliseconds;

namespace {
std::vector<std::string> types(const std::vector<StreamEvent>& events) {
    std::vector<std::string> out;
    for (const StreamEvent& event : events)
        if (event.type != "ping") out.push_back(event.type);
    return out;
}

using Types = std::vector<std::string>;

}  // namespace

TEST_CASE("Jupyter: a run's messages become events in order") {
    JupyterSetup setup;
    setup.jupyter.script = [](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        auto request = co_await kernel.next();
        co_await kernel.busy(request.id);
        co_await kernel.print(request.id, "one\ntwo\n");
        co_await kernel.say("stream", request.id, R"({"name":"stderr","text":"oops"})");
        co_await kernel.say("display_data", request.id,
                            R"({"data":{"image/png":"aGk=","text/plain":"<Figure>"}})");
        co_await kernel.say("clear_output", request.id, R"({"wait":false})");
        co_await kernel.say("execute_result", request.id,
                            R"({"execution_count":7,"data":{"text/plain":"4"}})");
        co_await kernel.reply(request.id);
        co_await kernel.idle(request.id);
        (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(types(events) == Types{"init", "stdout", "stderr", "result", "execution_count",
                                     "result", "execution_complete"});
        CHECK(events[0].text == setup.id);
        CHECK(joined(events, "stdout") == "one\ntwo\n");
        CHECK(joined(events, "stderr") == "oops");
    });
    CHECK(setup.raw.find(R"("results":{"image/png":"aGk=","text":"<Figure>"}})") !=
          std::string::npos);
    CHECK(setup.raw.find(R"("execution_count":7)") != std::string::npos);
    CHECK(setup.raw.find(R"("results":{"text":"4"}})") != std::string::npos);
}

TEST_CASE("Jupyter: an error is told once, with its traceback, after the output") {
    JupyterSetup setup;
    setup.jupyter.script = [](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        auto request = co_await kernel.next();
        const char* error = R"({"status":"error","ename":"ZeroDivisionError","evalue":"division",)"
                            R"("traceback":["\u001b[31mline","more"]})";
        co_await kernel.say("error", request.id, error);
        co_await kernel.print(request.id, "late\n");
        co_await kernel.say("execute_reply", request.id, error);
        co_await kernel.idle(request.id);
        (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(types(events) == Types{"init", "stdout", "status", "error"});
        CHECK(joined(events, "status") == "error");
        CHECK(events.back().name == "ZeroDivisionError");
        CHECK(events.back().value == "division");
        CHECK(events.back().trace == "\x1b[31mline");
    });
}

TEST_CASE("Jupyter: a failure that only the reply tells is an error") {
    JupyterSetup setup;
    setup.jupyter.script = [](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        auto request = co_await kernel.next();
        co_await kernel.idle(request.id);
        co_await kernel.say("execute_reply", request.id,
                            R"({"status":"error","ename":"","evalue":"3","traceback":[]})");
        (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start("bash");
        auto events = co_await setup.run(kernel);
        CHECK(events.back().type == "error");
        CHECK(events.back().name == "Error");
        CHECK(events.back().value == "3");
    });
}

TEST_CASE("Jupyter: messages of other requests neither show nor end a run") {
    JupyterSetup setup;
    setup.jupyter.script = [](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        auto request = co_await kernel.next();
        co_await kernel.print("somebody-else", "not yours\n");
        co_await kernel.reply("somebody-else");
        co_await kernel.idle("somebody-else");
        co_await kernel.idle("");
        (void)co_await kernel.connection().send_text("no JSON at all");
        co_await kernel.print(request.id, "yours\n");
        co_await kernel.idle(request.id);
        co_await kernel.reply(request.id);
        (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(types(events) == Types{"init", "stdout", "execution_complete"});
        CHECK(joined(events, "stdout") == "yours\n");
    });
}

TEST_CASE("Jupyter: a reply that comes late is waited for, whatever comes first") {
    JupyterSetup setup;
    setup.jupyter.script = [](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        auto request = co_await kernel.next();
        // Longer than the interval at which the server is asked; its kernel says that it is busy.
        co_await net::sleep_for(milliseconds(350));
        co_await kernel.reply(request.id);
        co_await kernel.print(request.id, "behind the reply\n");
        co_await kernel.idle(request.id);
        (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(types(events) == Types{"init", "stdout", "execution_complete"});
    });
}

TEST_CASE("Jupyter: a lost reply or a lost idle does not hang a run") {
    const bool idle = GENERATE(true, false);
    JupyterSetup setup;
    setup.jupyter.script = [idle](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        auto request = co_await kernel.next();
        co_await kernel.print(request.id, "done\n");
        if (idle) {
            co_await kernel.idle(request.id);
        } else {
            co_await kernel.reply(request.id);
        }
        (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(types(events) == Types{"init", "stdout", "execution_complete"});
        CHECK(kernel->alive());
    });
}

TEST_CASE("Jupyter: a run whose kernel is idle and silent ends with an error") {
    JupyterSetup setup;
    setup.jupyter.state = "idle";
    setup.jupyter.script = [](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        (void)co_await kernel.next();
        (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(types(events) == Types{"init", "error"});
        CHECK(events.back().name == "KernelConnectionError");
        CHECK(events.back().value.find("its reply was lost") != std::string::npos);
    });
}

TEST_CASE("Jupyter: a kernel that dies in a run ends it with an error") {
    JupyterSetup setup;
    setup.jupyter.script = [](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        auto request = co_await kernel.next();
        co_await kernel.busy(request.id);
        co_await kernel.say("status", "", R"({"execution_state":"restarting"})");
        co_await echo(kernel);
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(types(events) == Types{"init", "status", "error"});
        CHECK(events.back().name == "DeadKernelError");
        // The restarted one takes code again.
        events = co_await setup.run(kernel, "again");
        CHECK(joined(events, "stdout") == "again\n");
    });
}

TEST_CASE("Jupyter: a dropped connection is opened again and the run goes on") {
    JupyterSetup setup;
    auto request = std::make_shared<FakeJupyter::Kernel::Request>();
    setup.jupyter.script = [request](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        if (kernel.number() == 1) {
            *request = co_await kernel.next();
            co_await kernel.print(request->id, "before\n");
            co_return;
        }
        co_await kernel.print(request->id, "after\n");
        co_await kernel.reply(request->id);
        co_await kernel.idle(request->id);
        (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(types(events) == Types{"init", "stdout", "stdout", "execution_complete"});
        CHECK(joined(events, "stdout") == "before\nafter\n");
        CHECK(setup.jupyter.connections == 2);
    });
}

TEST_CASE("Jupyter: a connection that drops and drops again ends the run with an error") {
    JupyterSetup setup;
    setup.jupyter.script = [](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        if (kernel.number() == 1) (void)co_await kernel.next();
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        auto events = co_await setup.run(kernel);
        CHECK(types(events) == Types{"init", "error"});
        CHECK(events.back().name == "KernelConnectionError");
        CHECK(setup.jupyter.connections == 2);
    });
}

TEST_CASE("Jupyter: the connection is kept between runs, and replaced when it ended meanwhile") {
    JupyterSetup setup;
    setup.jupyter.script = [](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        if (kernel.number() > 1) co_return co_await echo(kernel);
        for (int run = 0; run < 2; ++run) {
            auto request = co_await kernel.next();
            co_await kernel.print(request.id, request.code);
            co_await kernel.reply(request.id);
            co_await kernel.idle(request.id);
        }
    };
    setup.loop.run([&]() -> Awaitable<void> {
        auto kernel = co_await setup.start();
        CHECK(joined(co_await setup.run(kernel, "a"), "stdout") == "a");
        CHECK(joined(co_await setup.run(kernel, "b"), "stdout") == "b");
        CHECK(setup.jupyter.connections == 1);
        co_await net::sleep_for(milliseconds(20));
        CHECK(joined(co_await setup.run(kernel, "c"), "stdout") == "c\n");
        CHECK(setup.jupyter.connections == 2);
    });
}

TEST_CASE("Jupyter: what a kernel prints beyond what its reader takes does not pile up") {
    JupyterSetup setup;
    auto sent = std::make_shared<std::size_t>(0);
    auto stop = std::make_shared<bool>(false);
    setup.jupyter.script = [sent, stop](FakeJupyter::Kernel& kernel) -> Awaitable<void> {
        auto request = co_await kernel.next();
        const std::string text(100'000, 'x');
        while (!*stop) {
            co_await kernel.print(request.id, text);
            *sent += text.size();
        }
    };
    setup.loop.run([&]() -> Awaitable<void> {
        setup.kernel = co_await setup.start();
        auto stream = co_await http::test::dial(setup.streams.port);
        co_await http::test::send(*stream,
                                  "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
        std::size_t before = 0;
        do {
            before = *sent;
            co_await net::sleep_for(milliseconds(200));
        } while (*sent == 0 || *sent != before);
        // Socket buffers on the way, one batch, one message.
        CHECK(*sent < 40'000'000);
        *stop = true;
        stream->close();
    });
}
