#include "agent/task/task_routes.hpp"

#include "base/identifier.hpp"

namespace opensandbox::agent {
namespace {

constexpr std::size_t kMostBody = 4 << 20;

http::Response failed(int status, std::string_view word, std::string message) {
    json::object body{{"code", word}, {"message", std::move(message)}};
    return http::json_response(status, json::serialize(body));
}

http::Response refused(const Error& error) {
    if (error.code() == ErrorCode::invalid_argument)
        return failed(400, "Bad Request", error.message());
    return failed(500, "Internal Server Error", error.message());
}

http::Response shown(const TaskTable& tasks) {
    return http::json_response(200, model::tasks_json(tasks.list()));
}

struct Executor {
    TaskTable& tasks;
    std::string token;
    http::Router router;
};

Awaitable<void> set_tasks(Executor* executor, http::Exchange& exchange) {
    auto body = co_await http::read_all(exchange.body(), kMostBody);
    http::Response response;
    if (!body) {
        response = failed(400, "Bad Request", body.error().message());
    } else if (auto wanted = model::parse_tasks(*body); !wanted) {
        response = refused(wanted.error());
    } else {
        auto done = co_await executor->tasks.set(std::move(*wanted));
        response = done ? shown(executor->tasks) : refused(done.error());
    }
    co_await exchange.respond(std::move(response));
}

Awaitable<void> add_task(Executor* executor, http::Exchange& exchange) {
    auto body = co_await http::read_all(exchange.body(), kMostBody);
    http::Response response;
    auto list = body ? model::parse_tasks("[" + *body + "]")
                     : Result<std::vector<model::Task>>(body.error());
    if (!list) {
        response = refused(list.error());
    } else if (list->size() != 1) {
        response = failed(400, "Bad Request", "must be one task");
    } else {
        const std::string name = list->front().name;
        auto added = executor->tasks.add(std::move(list->front()));
        response =
            added ? http::json_response(
                        201, json::serialize(model::write_task(executor->tasks.find(name).value())))
                  : refused(added.error());
    }
    co_await exchange.respond(std::move(response));
}

Awaitable<void> get_task(Executor* executor, http::Exchange& exchange) {
    const std::string name(exchange.parameter("id"));
    const auto task = executor->tasks.find(name);
    http::Response response =
        task ? http::json_response(200, json::serialize(model::write_task(*task)))
             : failed(404, "Not Found", "there is no task " + name);
    co_await exchange.respond(std::move(response));
}

Awaitable<void> remove_task(Executor* executor, http::Exchange& exchange) {
    co_await executor->tasks.remove(std::string(exchange.parameter("id")));
    auto response = http::Response(204);
    co_await exchange.respond(std::move(response));
}

Awaitable<void> list_tasks(Executor* executor, http::Exchange& exchange) {
    auto response = shown(executor->tasks);
    co_await exchange.respond(std::move(response));
}

Awaitable<void> say_healthy(http::Exchange& exchange) {
    auto response = http::json_response(200, R"({"status":"healthy"})");
    co_await exchange.respond(std::move(response));
}

Awaitable<void> handle(std::shared_ptr<Executor> executor, http::Exchange& exchange) {
    const std::string path(exchange.request().path());
    const auto given = exchange.request().fields.get(model::kTaskTokenField).value_or("");
    if (path != "/health" && !executor->token.empty() &&
        !equal_constant_time(given, executor->token)) {
        auto response = failed(401, "Unauthorized", "X-Task-Token: must be the pool's");
        co_return co_await exchange.respond(std::move(response));
    }
    auto match = executor->router.lookup(exchange.request().method, path);
    if (!match.handler) {
        const bool known = !match.allowed.empty();
        auto response = failed(known ? 405 : 404, known ? "Method Not Allowed" : "Not Found", path);
        co_return co_await exchange.respond(std::move(response));
    }
    exchange.parameters = std::move(match.parameters);
    co_await (*match.handler)(exchange);
}

}  // namespace

http::Handler task_handler(TaskTable& tasks, std::string token) {
    auto executor = std::make_shared<Executor>(tasks, std::move(token));
    Executor* e = executor.get();
    http::Router& router = executor->router;
    router.add("POST", "/setTasks", [e](http::Exchange& x) { return set_tasks(e, x); });
    router.add("GET", "/getTasks", [e](http::Exchange& x) { return list_tasks(e, x); });
    router.add("POST", "/tasks", [e](http::Exchange& x) { return add_task(e, x); });
    router.add("GET", "/tasks/{id}", [e](http::Exchange& x) { return get_task(e, x); });
    router.add("DELETE", "/tasks/{id}", [e](http::Exchange& x) { return remove_task(e, x); });
    router.add("GET", "/health", say_healthy);
    return [executor](http::Exchange& exchange) { return handle(executor, exchange); };
}

}  // namespace opensandbox::agent
