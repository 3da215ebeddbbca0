#include "agent_process.hpp"

#include "http/client.hpp"
#include "json/document.hpp"
#include "net/task.hpp"
#include "printable.hpp"

#include <arpa/inet.h>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <signal.h>

namespace opensandbox::agent::testing {
namespace {

UniqueFd listen_on_loopback(std::uint16_t& port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(fd.get(), 64) == 0);
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    return fd;
}

Awaitable<void> exchange(http::Client& client, http::Origin origin, http::ClientRequest request,
                         Result<Reply>& out) {
    auto response = co_await client.send(origin, std::move(request));
    if (!response) {
        out = response.error();
        co_return;
    }
    Reply reply;
    reply.status = (*response)->head().status;
    reply.fields = (*response)->head().fields;
    Result<std::string> body = co_await http::read_all((*response)->body(), std::size_t{1} << 30);
    if (!body) {
        out = body.error();
        co_return;
    }
    reply.body = std::move(*body);
    out = std::move(reply);
}

std::string member(const json::object& from, std::string_view name) {
    const json::value* value = json::find(from, name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

Scratch::Scratch() {
    char path[] = "/tmp/agent-test-XXXXXX";
    REQUIRE(::mkdtemp(path) != nullptr);
    path_ = path;
}

Scratch::~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string Scratch::file(const std::string& name, const std::string& content) const {
    std::ofstream(at(name), std::ios::binary) << content;
    return at(name);
}

std::string Scratch::read(const std::string& name) const {
    std::ifstream in(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<StreamEvent> parse_events(const std::string& body) {
    std::vector<StreamEvent> events;
    std::size_t at = 0;
    while (at < body.size()) {
        std::size_t end = body.find("\n\n", at);
        REQUIRE(end != std::string::npos);
        auto document = json::parse(std::string_view(body).substr(at, end - at));
        REQUIRE(document);
        const json::object& members = document->get_object();
        CHECK(json::find(members, "timestamp") != nullptr);
        StreamEvent event;
        event.type = member(members, "type");
        event.text = member(members, "text");
        if (const json::value* error = json::find(members, "error")) {
            event.name = member(error->get_object(), "ename");
            event.value = member(error->get_object(), "evalue");
            const auto& lines = error->get_object().at("traceback").get_array();
            if (!lines.empty()) event.trace = lines.front().get_string();
        }
        events.push_back(std::move(event));
        at = end + 2;
    }
    return events;
}

std::string joined(const std::vector<StreamEvent>& events, const std::string& type) {
    std::string out;
    for (const StreamEvent& event : events) {
        if (event.type == type) out += event.text;
    }
    return out;
}

RawConnection::RawConnection(std::uint16_t port, int receive_buffer)
    : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    timeval limit{60, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

RawConnection::~RawConnection() {
    ::close(fd_);
}

void RawConnection::send(const std::string& bytes) const {
    REQUIRE(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
}

std::string RawConnection::receive(std::size_t size) const {
    std::string bytes(size, '\0');
    ssize_t got = ::recv(fd_, bytes.data(), size, 0);
    if (got < 0 && errno == EAGAIN) FAIL("nothing came for a minute");
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
}

std::string RawConnection::receive_until(const std::string& mark) const {
    std::string all;
    while (all.find(mark) == std::string::npos) {
        std::string piece = receive(65536);
        if (piece.empty()) break;
        all += piece;
    }
    return all;
}

AgentProcess::AgentProcess(AgentOptions options) {
    options.listener = listen_on_loopback(port_);
    if (options.environment.empty()) {
        options.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/root"}};
    }
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    UniqueFd from_child(ends[0]);
    UniqueFd to_parent(ends[1]);
    options.on_ready = [fd = to_parent.get()](const Status& status) {
        std::string text = status ? "ready" : "failed: " + status.error().message();
        [[maybe_unused]] ssize_t put = ::write(fd, text.data(), text.size());
    };
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) ::_exit(run(std::move(options)));
    options.listener.reset();
    to_parent.reset();
    char text[512];
    ssize_t got = ::read(from_child.get(), text, sizeof text);
    ready_ = got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "died";
    if (ready_ == "ready") ready_.clear();
}

AgentProcess::~AgentProcess() {
    if (ended_) return;
    // In order first, so that it ends what it started.
    ::kill(pid_, SIGTERM);
    if (wait() >= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

Reply AgentProcess::call(const std::string& method, const std::string& target,
                         const std::string& body, http::Fields fields) const {
    asio::io_context loop;
    http::Client client(loop.get_executor());
    http::ClientRequest request(method, target, std::move(fields));
    request.content = body;
    Result<Reply> reply = Error(ErrorCode::internal, "no answer");
    net::spawn(loop.get_executor(),
               exchange(client, http::Origin("127.0.0.1", port_), std::move(request), reply),
               "test request");
    while (!reply && reply.error().message() == "no answer" && loop.run_one() > 0) {
    }
    // An answer is no assertion: calls come from several threads, and Catch2 serves one.
    if (!reply) FAIL(method << " " << target << ": " << reply.error().message());
    return *reply;
}

std::vector<StreamEvent> AgentProcess::command(const std::string& json) const {
    Reply reply = call("POST", "/command", json);
    INFO(reply.body.substr(0, 500));
    REQUIRE(reply.status == 200);
    return parse_events(reply.body);
}

void AgentProcess::signal(int number) const {
    ::kill(pid_, number);
}

int AgentProcess::wait() {
    int status = 0;
    if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

long AgentProcess::anonymous_memory() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/status");
    std::string word;
    long size = -1;
    while (in >> word) {
        if (word == "RssAnon:") in >> size;
    }
    return size;
}

int AgentProcess::zombies() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream in(entry.path() / "stat");
        std::string line;
        if (!std::getline(in, line)) continue;
        std::size_t close = line.rfind(')');
        if (close == std::string::npos) continue;
        std::string rest = line.substr(close + 2);
        if (rest.starts_with("Z " + std::to_string(pid_) + " ")) ++count;
    }
    return count;
}

std::string shell_request(const std::string& command, const std::string& more) {
    json::object body{{"command", command}};
    std::string text = json::serialize(json::value(std::move(body)));
    if (!more.empty()) text.insert(text.size() - 1, "," + more);
    return text;
}

}  // namespace opensandbox::agent::testing
