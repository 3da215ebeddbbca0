#include "agent/role/task_executor.hpp"

#include "agent/role/role.hpp"
#include "agent/task/task_routes.hpp"
#include "base/log.hpp"
#include "http/server.hpp"
#include "options/help.hpp"
#include "options/line_reader.hpp"
#include "options/setters.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr options::Grammar kExecutorGrammar{
    .go = true, .unknown = "unknown flag '{word}'", .missing = "{name}: needs a value"};
constexpr std::chrono::seconds kDrain{1};

struct ExecutorOptions {
    std::string listen = "0.0.0.0:5758";
    std::string ignored;
    bool help = false;
};

std::vector<options::Option> executor_table(ExecutorOptions& into) {
    using options::bound;
    std::vector<options::Option> table{
        bound({"-listen-addr", 0, "address", "where to listen (0.0.0.0:5758)"},
              options::text(into.listen), "LISTEN_ADDR"),
        bound({"-help", 'h'}, options::constant(into.help, true)),
    };
    // Of the published executor: it keeps files where this one keeps nothing.
    for (const char* name : {"-data-dir", "-cri-socket", "-main-container-name", "-log-max-size",
                             "-log-max-backups", "-log-max-age", "-log-dir"}) {
        table.push_back(bound({.name = name, .value = "value"}, options::text(into.ignored)));
    }
    return table;
}

Awaitable<void> collect_children(asio::io_context* io, Reaper* reaper) {
    asio::signal_set ended(*io, SIGCHLD);
    while (true) {
        co_await ended.async_wait(kAsTupleAwaitable);
        while (reaper->collect()) {
        }
    }
}

Awaitable<void> serve_until_signalled(asio::io_context* io, TaskTable* tasks,
                                      http::Server* server) {
    asio::signal_set signals(*io, SIGTERM, SIGINT);
    co_await signals.async_wait(kAsTupleAwaitable);
    co_await server->drain(kDrain);
    co_await tasks->remove_all();
    io->stop();
}

int fail(const Error& error) {
    log::error("cannot start", {{"error", error.message()}});
    return 1;
}

}  // namespace

int task_executor_main(int argc, char** argv) {
    ExecutorOptions options;
    const std::vector<std::string> words(argv + 1, argv + argc);
    Environment environment = current_environment();
    const options::Variable variable = [&](std::string_view name) -> std::optional<std::string> {
        const auto value = environment.get(name);
        return value ? std::optional(std::string(*value)) : std::nullopt;
    };
    const auto table = executor_table(options);
    auto parsed = options::parse(table, kExecutorGrammar, words, variable);
    constexpr std::size_t kColumn = 24;
    const std::string usage = "usage: opensandbox task-executor [flags]\n" +
                              options::help_rows(table, kColumn) +
                              "With OPENSANDBOX_TASK_TOKEN in its environment requests need it in "
                              "X-Task-Token.\n";
    if (!parsed || !parsed->empty()) {
        std::fprintf(stderr, "task-executor: %s\n%s",
                     parsed ? "unexpected argument" : parsed.error().message().c_str(),
                     usage.c_str());
        return 2;
    }
    if (options.help) {
        std::fputs(usage.c_str(), stdout);
        return 0;
    }
    log::configure(log::Level::info, log::Format::json, STDERR_FILENO);
    const std::size_t colon = options.listen.rfind(':');
    const auto port = options::whole_number(
        std::string_view(options.listen).substr(colon == std::string::npos ? 0 : colon + 1), 1,
        UINT16_MAX);
    if (colon == std::string::npos || !port)
        return fail(invalid("-listen-addr: '" + options.listen + "' must be HOST:PORT"));
    // Orphans of the sandbox are ours, also where another is process 1.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);

    std::string token(environment.get(model::kTaskTokenVariable).value_or(""));
    environment.erase(model::kTaskTokenVariable);
    asio::io_context io{1};
    Reaper reaper;
    TaskTable tasks(io.get_executor(), reaper, std::move(environment));
    http::Server server(io.get_executor(), task_handler(tasks, std::move(token)));
    auto listener = net::listen_tcp(io.get_executor(), options.listen.substr(0, colon),
                                    static_cast<std::uint16_t>(*port));
    if (!listener) return fail(listener.error().within("-listen-addr"));
    server.serve(std::move(*listener));
    log::info("executor listens", {{"address", options.listen}});
    net::spawn(io.get_executor(), collect_children(&io, &reaper), "collect children");
    net::spawn(io.get_executor(), serve_until_signalled(&io, &tasks, &server), "task executor");
    io.run();
    return 0;
}

}  // namespace opensandbox::agent
