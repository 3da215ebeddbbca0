#include "http/client_stop.hpp"
#include "image/reference.hpp"
#include "json/document.hpp"
#include "net/task.hpp"
#include "server/api/images.hpp"
#include "server/api/request_body.hpp"
#include "server/api/services.hpp"
#include "server/error_response.hpp"

#include <functional>
#include <map>

namespace opensandbox::server {
namespace {

/// Lines of one layer come at most this often.
constexpr std::chrono::milliseconds kPace{100};

/// The body of both routes.
struct TransferRequest {
    std::string reference;
    std::string destination;  ///< of a push; empty: the reference
    std::optional<model::RegistryLogin> login;
};

Result<TransferRequest> parse_transfer(std::string_view body) {
    auto document = json::parse(body);
    if (!document) return document.error();
    if (!document->is_object()) return Error(ErrorCode::invalid_argument, "must be an object");
    const json::object& object = document->get_object();
    TransferRequest request;
    auto reference = json::get_string(object, "reference");
    auto destination = json::get_string(object, "destination");
    if (!reference) return reference.error();
    if (!destination) return destination.error();
    if (!*reference) return Error(ErrorCode::invalid_argument, "reference: is missing");
    auto name = image::normalize_reference(**reference);
    if (!name) return name.error().within("reference");
    request.reference = std::move(*name);
    request.destination = destination->value_or("");
    const json::value* auth = json::find(object, "auth");
    if (!auth) return request;
    if (!auth->is_object()) return Error(ErrorCode::invalid_argument, "auth: must be an object");
    auto username = json::get_string(auth->get_object(), "username");
    auto password = json::get_string(auth->get_object(), "password");
    if (!username) return username.error().within("auth");
    if (!password) return password.error().within("auth");
    request.login.emplace(username->value_or(""), password->value_or(""));
    return request;
}

/// What a transfer says, kept until the client has taken it: of each layer only the newest.
struct Board {
    explicit Board(asio::any_io_executor executor) : changed(std::move(executor)) {}
    std::map<std::string, registry::LayerProgress> news;
    std::optional<Error> failure;
    std::string last_line;  ///< of a success; empty while the transfer goes on
    net::Event changed;

    [[nodiscard]] bool ended() const { return failure || !last_line.empty(); }
    std::string take() {
        std::string lines;
        for (const auto& [layer, progress] : news) {
            lines += "{\"layer\":" + model::json_string(layer) + ",\"status\":\"" +
                     std::string(registry::to_string(progress.status)) +
                     "\",\"done\":" + std::to_string(progress.done) +
                     ",\"total\":" + std::to_string(progress.total) + "}\n";
        }
        news.clear();
        return lines;
    }
};

std::string failure_line(const Error& error) {
    return "{\"error\":{\"code\":" + model::json_string(error.wire()) +
           ",\"message\":" + model::json_string(error.message()) + "}}\n";
}

using Transfer = std::function<Awaitable<Result<std::string>>(registry::Watcher, std::stop_token)>;

Awaitable<void> run_transfer(std::shared_ptr<Board> board, Transfer transfer,
                             registry::Watcher watcher, std::stop_token stop) {
    auto line = co_await transfer(std::move(watcher), std::move(stop));
    if (line) board->last_line = std::move(*line);
    if (!line) board->failure = transfer_error(line.error());
    board->changed.notify();
}

/// Streams the progress. What fails before there is any is answered with a status of its own. The
/// transfer is let go of when the client is gone.
Awaitable<void> show_transfer(http::Exchange& exchange, Transfer transfer) {
    auto executor = co_await asio::this_coro::executor;
    auto board = std::make_shared<Board>(executor);
    auto watcher =
        std::make_shared<registry::ProgressListener>([board](const registry::LayerProgress& p) {
            board->news[p.layer] = p;
            board->changed.notify();
        });
    http::ClientStop client(exchange);
    std::stop_token stop = client.token();
    const auto wake = [board] { board->changed.notify(); };
    std::stop_callback gone(stop, wake);
    net::spawn(executor, run_transfer(board, std::move(transfer), watcher, stop), "image transfer");
    co_await board->changed.wait();
    if (stop.stop_requested()) co_return;
    if (board->failure && board->news.empty()) {
        auto refusal = error_response(*board->failure);
        co_return co_await exchange.respond(std::move(refusal));
    }
    http::Fields fields{{"Content-Type", "application/x-ndjson"}};
    http::ResponseHead head(200, std::move(fields));
    auto started = co_await exchange.start(std::move(head));
    while (started && !board->ended() && !stop.stop_requested()) {
        started = co_await exchange.write(board->take());
        co_await net::sleep_for(kPace);
        if (board->news.empty() && !board->ended() && !stop.stop_requested()) {
            co_await board->changed.wait();
        }
    }
    if (!started || stop.stop_requested()) co_return;
    std::string last = board->take();
    last += board->failure ? failure_line(*board->failure) : board->last_line;
    co_await exchange.finish_with(last);
}

/// The request, or nothing when it was refused.
Awaitable<std::optional<TransferRequest>> read_transfer(Services& services,
                                                        http::Exchange& exchange) {
    std::optional<TransferRequest> request;
    auto body = co_await read_json_body(exchange);
    if (!body) co_return request;
    auto parsed = parse_transfer(*body);
    std::optional<Error> refused;
    if (!parsed) refused = image_error(parsed.error());
    if (parsed && parsed->reference == image::kHostReference) {
        refused = Error(ErrorCode::conflict, "IMAGE::CONFLICT",
                        "image \"host\" is built in: no registry has it");
    }
    if (!services.registries) {
        refused = Error(ErrorCode::unsupported, "IMAGE::UNSUPPORTED",
                        "the runtime of this server has images of its own");
    }
    if (refused) {
        auto refusal = error_response(*refused);
        co_await exchange.respond(std::move(refusal));
        co_return request;
    }
    request = std::move(*parsed);
    co_return request;
}

Awaitable<Result<std::string>> pull(registry::Registries& registries, TransferRequest request,
                                    registry::Watcher watcher, std::stop_token stop) {
    auto pulled = co_await registries.pull(std::move(request.reference), std::move(request.login),
                                           std::move(watcher), std::move(stop));
    if (!pulled) co_return pulled.error();
    std::string line = "{\"image\":";
    line += image_json(*pulled);
    line += "}\n";
    co_return line;
}

Awaitable<Result<std::string>> push(registry::Registries& registries, TransferRequest request,
                                    registry::Watcher watcher, std::stop_token stop) {
    auto pushed =
        co_await registries.push(std::move(request.reference), std::move(request.destination),
                                 std::move(request.login), std::move(watcher), std::move(stop));
    if (!pushed) co_return pushed.error();
    co_return "{\"pushed\":{\"reference\":" + model::json_string(pushed->reference) +
        ",\"digest\":" + model::json_string(pushed->digest) +
        ",\"size\":" + std::to_string(pushed->size) + "}}\n";
}

Awaitable<void> pull_image(Services& services, http::Exchange& exchange) {
    auto request = co_await read_transfer(services, exchange);
    if (!request) co_return;
    Transfer transfer = [registries = services.registries, request](registry::Watcher watcher,
                                                                    std::stop_token stop) {
        return pull(*registries, *request, std::move(watcher), std::move(stop));
    };
    co_await show_transfer(exchange, std::move(transfer));
}

Awaitable<void> push_image(Services& services, http::Exchange& exchange) {
    auto request = co_await read_transfer(services, exchange);
    if (!request) co_return;
    Transfer transfer = [registries = services.registries, request](registry::Watcher watcher,
                                                                    std::stop_token stop) {
        return push(*registries, *request, std::move(watcher), std::move(stop));
    };
    co_await show_transfer(exchange, std::move(transfer));
}

}  // namespace

void add_image_transfer_routes(http::Router& router, Services& services, Mount mount) {
    using http::Exchange;
    std::string all = std::string(mount) + "/images";
    Services* s = &services;
    router.add("POST", all + "/pull", [s](Exchange& x) { return pull_image(*s, x); });
    router.add("POST", all + "/push", [s](Exchange& x) { return push_image(*s, x); });
}

}  // namespace opensandbox::server
