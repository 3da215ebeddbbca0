#include "agent/code/jupyter/server.hpp"

#include "net/task.hpp"

#include <optional>

namespace opensandbox::agent::jupyter {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kLargestReply = std::size_t{8} << 20;
constexpr std::chrono::milliseconds kStartPoll{200};
/// Shown of a refusal.
constexpr std::size_t kShown = 300;

Result<json::value> document_of(const std::string& body) {
    Result<json::value> document = json::parse(body);
    if (!document) {
        return Error(ErrorCode::bad_gateway, "Jupyter: " + document.error().message());
    }
    return document;
}

/// What the server says about a refusal, in its own words where it has some.
Error refusal(int status, const std::string& body) {
    std::string text = "Jupyter answered " + std::to_string(status);
    if (status == 401 || status == 403) text += " (is its token right?)";
    Result<json::value> document = json::parse(body);
    if (document && document->is_object()) {
        const json::value* message = json::find(document->get_object(), "message");
        if (message && message->is_string()) {
            text += ": " + std::string(message->get_string()).substr(0, kShown);
        }
    }
    return {ErrorCode::bad_gateway, std::move(text)};
}

}  // namespace

Server::Server(asio::any_io_executor executor, http::Client& client, http::Url url,
               std::string token, Limits limits)
    : executor_(std::move(executor)),
      client_(client),
      url_(std::move(url)),
      token_(std::move(token)),
      limits_(limits),
      created_(steady_clock::now()) {}

http::Fields Server::fields() const {
    http::Fields fields;
    if (!token_.empty()) fields.add("Authorization", "Token " + token_);
    return fields;
}

bool Server::starting() const {
    return !answered_ && steady_clock::now() < created_ + limits_.startup;
}

Awaitable<Result<Server::Reply>> Server::request(std::string method, std::string path,
                                                 std::string body,
                                                 std::chrono::milliseconds limit) {
    Result<Reply> reply = co_await request_once(method, path, body, limit);
    while (!reply && reply.error().code() == ErrorCode::unavailable && starting()) {
        co_await net::sleep_for(kStartPoll);
        reply = co_await request_once(method, path, body, limit);
    }
    if (!reply) co_return reply.error().within("Jupyter");
    answered_ = true;
    co_return reply;
}

Awaitable<Result<Server::Reply>> Server::request_once(std::string method, std::string path,
                                                      std::string body,
                                                      std::chrono::milliseconds limit) {
    http::ClientRequest request(std::move(method), url_.path + path, fields());
    if (!body.empty()) request.head.fields.add("Content-Type", "application/json");
    request.content = std::move(body);
    http::AbortHandle abort;
    request.abort = &abort;
    std::unique_ptr<http::ClientResponse> response;
    net::Deadline deadline(executor_, limit, [&] {
        if (response) {
            response->abort();
        } else {
            abort.abort();
        }
    });
    auto sent = co_await client_.send(url_.origin, std::move(request));
    if (deadline.expired()) co_return Error(ErrorCode::timeout, "no answer in time");
    if (!sent) co_return sent.error();
    response = std::move(*sent);
    Reply reply;
    reply.status = response->head().status;
    auto content = co_await http::read_all(response->body(), kLargestReply);
    if (deadline.expired()) co_return Error(ErrorCode::timeout, "no whole answer in time");
    if (!content) co_return content.error();
    reply.body = std::move(*content);
    co_return reply;
}

Awaitable<Result<std::vector<KernelSpec>>> Server::kernel_specs(bool fresh) {
    auto age = steady_clock::now() - specs_read_;
    if (!fresh && !specs_.empty() && age < limits_.specs) co_return specs_;
    Result<Reply> reply = co_await request("GET", "/api/kernelspecs", {}, limits_.request);
    if (!reply) co_return reply.error();
    if (reply->status != 200) co_return refusal(reply->status, reply->body);
    Result<json::value> document = document_of(reply->body);
    if (!document) co_return document.error();
    specs_ = read_kernel_specs(*document);
    specs_read_ = steady_clock::now();
    co_return specs_;
}

Awaitable<Result<Session>> Server::create_session(std::string path, std::string kernel_name) {
    json::object wanted;
    wanted["path"] = path;
    wanted["name"] = path.substr(path.rfind('/') + 1);
    wanted["type"] = "notebook";
    wanted["kernel"] = {{"name", kernel_name}};
    std::string body = json::serialize(wanted);
    Result<Reply> reply = co_await request("POST", "/api/sessions", std::move(body), limits_.start);
    if (!reply) co_return reply.error();
    if (reply->status != 200 && reply->status != 201) {
        co_return refusal(reply->status, reply->body).within("start of kernel " + kernel_name);
    }
    Result<json::value> document = document_of(reply->body);
    if (!document) co_return document.error();
    co_return read_session(*document);
}

Awaitable<Result<std::vector<Session>>> Server::sessions() {
    Result<Reply> reply = co_await request_once("GET", "/api/sessions", {}, limits_.request);
    if (!reply) co_return reply.error().within("Jupyter");
    answered_ = true;
    if (reply->status != 200) co_return refusal(reply->status, reply->body);
    Result<json::value> document = document_of(reply->body);
    if (!document) co_return document.error();
    std::vector<Session> sessions;
    if (!document->is_array()) co_return sessions;
    for (const json::value& entry : document->get_array()) {
        Result<Session> session = read_session(entry);
        if (session) sessions.push_back(std::move(*session));
    }
    co_return sessions;
}

Awaitable<Status> Server::delete_session(std::string id) {
    Result<Reply> reply = co_await request("DELETE", "/api/sessions/" + http::percent_encode(id),
                                           {}, limits_.request);
    if (!reply) co_return reply.error();
    if (reply->status >= 300 && reply->status != 404 && reply->status != 410) {
        co_return refusal(reply->status, reply->body);
    }
    co_return Status();
}

Awaitable<Status> Server::interrupt(std::string kernel_id) {
    std::string path = "/api/kernels/" + http::percent_encode(kernel_id) + "/interrupt";
    Result<Reply> reply = co_await request("POST", std::move(path), {}, limits_.request);
    if (!reply) co_return reply.error();
    if (reply->status >= 300) co_return refusal(reply->status, reply->body);
    co_return Status();
}

Awaitable<Result<std::string>> Server::kernel_state(std::string kernel_id) {
    std::string path = "/api/kernels/" + http::percent_encode(kernel_id);
    Result<Reply> reply = co_await request("GET", std::move(path), {}, limits_.request);
    if (!reply) co_return reply.error();
    if (reply->status == 404) {
        co_return Error(ErrorCode::not_found, "the kernel does not exist any more");
    }
    if (reply->status != 200) co_return refusal(reply->status, reply->body);
    Result<json::value> document = document_of(reply->body);
    if (!document) co_return document.error();
    const json::value* state =
        document->is_object() ? json::find(document->get_object(), "execution_state") : nullptr;
    co_return state && state->is_string() ? std::string(state->get_string()) : std::string();
}

Awaitable<Result<std::unique_ptr<http::WebSocketConnection>>> Server::open_channels(
    std::string kernel_id, std::string session_id) {
    std::string target = url_.path + "/api/kernels/" + http::percent_encode(kernel_id) +
                         "/channels?session_id=" + session_id;
    http::Origin origin = url_.origin;
    http::Fields with = fields();
    auto connection = co_await http::connect_websocket(client_, std::move(origin),
                                                       std::move(target), std::move(with));
    if (!connection) co_return connection.error().within("Jupyter");
    co_return std::move(*connection);
}

}  // namespace opensandbox::agent::jupyter
