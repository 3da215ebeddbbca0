// Shows a command's output as it comes, both streams apart, and how it ended: in a coroutine, on an
// event loop of the program's own.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <iostream>
#include <opensandbox/sandbox.hpp>

using namespace opensandbox::sdk;

namespace {

boost::asio::awaitable<int> follow(Connection server) {
    CreateOptions options("host");
    Sandbox sandbox = (co_await Sandbox::create(server, options)).value();
    CommandRequest count("for i in 1 2 3; do echo line $i; echo note $i >&2; done; exit 7");
    EventStream events = (co_await sandbox.commands().stream(count)).value();
    Execution execution;
    while (auto event = (co_await events.next()).value()) {
        if (event->type == EventType::standard_output) std::cout << "out " << event->text;
        if (event->type == EventType::standard_error) std::cout << "err " << event->text;
        if (apply_terminal_event(*event, execution)) break;
    }
    (co_await sandbox.kill()).value();
    std::cout << "exit " << execution.exit_code.value_or(-1) << std::endl;
    co_return 0;
}

}  // namespace

int main() {
    boost::asio::io_context context(1);
    Connection server =
        Connection::open(context.get_executor(), ConnectionConfig::discover().value()).value();
    int status = 1;
    boost::asio::co_spawn(context, follow(server), [&](std::exception_ptr thrown, int outcome) {
        if (thrown) std::rethrow_exception(thrown);
        status = outcome;
    });
    context.run();
    return status;
}
