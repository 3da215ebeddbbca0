#include "runtime/kubernetes/task_client.hpp"

namespace opensandbox::runtime::kubernetes {
namespace {

constexpr std::size_t kMostAnswer = 4 << 20;

http::ClientOptions task_options() {
    constexpr std::chrono::milliseconds kConnect{1'000};
    constexpr std::chrono::milliseconds kHead{3'000};
    http::ClientOptions options;
    options.connect_timeout = kConnect;
    options.head_timeout = kHead;
    options.max_idle_per_origin = 1;
    return options;
}

}  // namespace

TaskClient::TaskClient(asio::any_io_executor executor)
    : client_(std::move(executor), task_options()) {}

Awaitable<Result<std::vector<model::Task>>> TaskClient::list(TaskExecutor executor) {
    return call(std::move(executor), "GET", "/getTasks", {});
}

Awaitable<Result<std::vector<model::Task>>> TaskClient::set(TaskExecutor executor,
                                                            std::vector<model::Task> wanted) {
    return call(std::move(executor), "POST", "/setTasks", model::tasks_json(wanted));
}

Awaitable<Result<std::vector<model::Task>>> TaskClient::call(TaskExecutor executor,
                                                             std::string method, std::string path,
                                                             std::string content) {
    http::Fields fields;
    if (!executor.token.empty()) fields.set(model::kTaskTokenField, executor.token);
    if (!content.empty()) fields.set("Content-Type", "application/json");
    http::ClientRequest request(std::move(method), std::move(path), std::move(fields));
    request.content = std::move(content);
    http::Origin origin(std::move(executor.address), model::kTaskPort);
    auto answer = co_await client_.send(origin, std::move(request));
    if (!answer) co_return answer.error().within("task executor");
    const int status = (*answer)->head().status;
    auto text = co_await http::read_all((*answer)->body(), kMostAnswer);
    if (!text) co_return text.error().within("task executor");
    if (status != 200) {
        co_return Error(
            ErrorCode::bad_gateway,
            "task executor: it answered " + std::to_string(status) + ": " + text->substr(0, 300));
    }
    auto tasks = model::parse_tasks(*text);
    if (!tasks)
        co_return Error(ErrorCode::bad_gateway, "task executor: " + tasks.error().message());
    co_return std::move(*tasks);
}

}  // namespace opensandbox::runtime::kubernetes
