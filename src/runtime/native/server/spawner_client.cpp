#include "runtime/native/server/spawner_client.hpp"

#include "base/log.hpp"
#include "net/task.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/ground/message_socket.hpp"
#include "version.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

namespace opensandbox::runtime::native {

namespace {

/// Longer than any answer of a living spawner takes.
constexpr std::chrono::seconds kAnswerTimeout{60};
/// Copying a large writable layer takes its time.
constexpr std::chrono::minutes kSnapshotTimeout{30};

Error lost() {
    return {ErrorCode::unavailable, "the connection to the spawner was lost"};
}

}  // namespace

/// One request that waits for its answer.
struct SpawnerClient::Pending {
    explicit Pending(const asio::any_io_executor& executor) : answered(executor) {}
    net::Event answered;
    std::optional<Result<Message>> answer;
    std::vector<Observed> observed;
    std::string text;
};

struct SpawnerClient::State : std::enable_shared_from_this<State> {
    State(const asio::any_io_executor& executor, UniqueFd fd, Listeners chosen)
        : descriptor(executor, fd.release()), listeners(std::move(chosen)) {}

    asio::posix::stream_descriptor descriptor;
    Listeners listeners;
    HelloReply spawner;
    std::map<std::uint64_t, std::shared_ptr<Pending>> pending;
    std::deque<std::string> outgoing;
    std::uint64_t last_number = 0;
    bool connected = true;
    bool closing = false;

    void answer(std::uint64_t number, Result<Message> message) {
        const auto found = pending.find(number);
        if (found == pending.end()) return;
        const auto waiting = found->second;
        pending.erase(found);
        waiting->answer = std::move(message);
        waiting->answered.notify();
    }

    void lose() {
        if (!connected) return;
        connected = false;
        boost::system::error_code ignored;
        descriptor.close(ignored);
        while (!pending.empty())
            answer(pending.begin()->first, lost());
        if (!closing && listeners.on_lost) listeners.on_lost();
    }

    void handle(Message message) {
        if (auto* exit = std::get_if<ExitNotice>(&message)) {
            if (listeners.on_exit) listeners.on_exit(exit->id, exit->exit);
        } else if (auto* figures = std::get_if<FiguresNotice>(&message)) {
            if (listeners.on_figures) listeners.on_figures(figures->figures);
        } else if (auto* item = std::get_if<ObservedReply>(&message)) {
            const auto found = pending.find(item->request);
            if (found != pending.end()) found->second->observed.push_back(item->sandbox);
        } else if (auto* piece = std::get_if<TextReply>(&message)) {
            const auto found = pending.find(piece->request);
            if (found != pending.end()) found->second->text += piece->text;
        } else if (auto* done = std::get_if<DoneReply>(&message)) {
            answer(done->request, std::move(message));
        } else if (auto* created = std::get_if<CreateReply>(&message)) {
            answer(created->request, std::move(message));
        } else if (auto* failed = std::get_if<FailedReply>(&message)) {
            answer(failed->request, failed->error);
        }
    }

    /// Sends what waits as far as the socket takes it; a coroutine waits for the rest.
    void flush() {
        while (connected && !outgoing.empty()) {
            auto sent = send_message(descriptor.native_handle(), outgoing.front());
            if (!sent && sent.error().code() == ErrorCode::resource_exhausted) {
                net::spawn(descriptor.get_executor(), wait_writable(shared_from_this()),
                           "spawner client");
                return;
            }
            if (!sent) return lose();
            ::explicit_bzero(outgoing.front().data(), outgoing.front().size());
            outgoing.pop_front();
        }
    }

    static Awaitable<void> wait_writable(std::shared_ptr<State> state) {
        boost::system::error_code error;
        co_await state->descriptor.async_wait(asio::posix::descriptor_base::wait_write,
                                              asio::redirect_error(asio::use_awaitable, error));
        if (!error) state->flush();
    }
};

SpawnerClient::SpawnerClient(std::shared_ptr<State> state) : state_(std::move(state)) {}

SpawnerClient::~SpawnerClient() {
    close();
}

void SpawnerClient::close() {
    state_->closing = true;
    state_->lose();
}

bool SpawnerClient::connected() const {
    return state_->connected;
}

const HelloReply& SpawnerClient::spawner() const {
    return state_->spawner;
}

Awaitable<Result<std::unique_ptr<SpawnerClient>>> SpawnerClient::connect(std::filesystem::path path,
                                                                         PoolSettings pool,
                                                                         Environment egress,
                                                                         Listeners listeners) {
    using Made = Result<std::unique_ptr<SpawnerClient>>;
    auto executor = co_await asio::this_coro::executor;
    auto fd = connect_message_socket(path);
    if (!fd) co_return Made(fd.error());
    if (auto s = send_message(fd->get(), encode(Hello{kProtocolVersion, pool, std::move(egress)}));
        !s) {
        co_return Made(s.error());
    }
    auto state = std::make_shared<State>(executor, std::move(*fd), std::move(listeners));
    net::Deadline deadline(executor, std::chrono::seconds(10), [state] { state->lose(); });
    boost::system::error_code error;
    co_await state->descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                                          asio::redirect_error(asio::use_awaitable, error));
    deadline.disarm();
    if (error) co_return Made(lost());
    auto received = receive_message(state->descriptor.native_handle());
    if (!received) co_return Made(received.error());
    auto message = decode(received->bytes);
    auto* reply = message ? std::get_if<HelloReply>(&*message) : nullptr;
    if (!reply || reply->version != kProtocolVersion || reply->program != kSpawnerProgram) {
        co_return Made(Error(ErrorCode::conflict, "the spawner that runs is of another version"));
    }
    state->spawner = *reply;
    net::spawn(executor, read_all(state), "spawner client");
    co_return Made(std::unique_ptr<SpawnerClient>(new SpawnerClient(state)));
}

Awaitable<void> SpawnerClient::read_all(std::shared_ptr<State> state) {
    while (state->connected) {
        auto received = receive_message(state->descriptor.native_handle());
        if (!received && received.error().code() == ErrorCode::resource_exhausted) {
            boost::system::error_code error;
            co_await state->descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                                                  asio::redirect_error(asio::use_awaitable, error));
            if (error) break;
            continue;
        }
        if (!received || received->closed) break;
        auto message = decode(received->bytes);
        if (!message) break;
        state->handle(std::move(*message));
    }
    state->lose();
}

void SpawnerClient::keep_warm(std::vector<CreateRequest> images) {
    if (!state_->connected) return;
    WarmImages message{std::move(images)};
    std::string bytes = encode(message);
    while (bytes.size() > kMaxMessage) {
        log::warn("too many images are to be kept warm; one is not",
                  {{"image", message.images.back().plan.image.reference}});
        message.images.pop_back();
        bytes = encode(message);
    }
    state_->outgoing.push_back(std::move(bytes));
    if (state_->outgoing.size() == 1) state_->flush();
}

Awaitable<std::shared_ptr<SpawnerClient::Pending>> SpawnerClient::exchange(
    std::uint64_t number, std::string bytes, std::chrono::seconds limit) {
    auto state = state_;
    auto waiting = std::make_shared<Pending>(state->descriptor.get_executor());
    if (bytes.size() > kMaxMessage) {
        waiting->answer =
            Error(ErrorCode::too_large, "entrypoint and env: together at most 256 KiB");
        co_return waiting;
    }
    if (!state->connected) {
        waiting->answer = lost();
        co_return waiting;
    }
    state->pending.emplace(number, waiting);
    state->outgoing.push_back(std::move(bytes));
    if (state->outgoing.size() == 1) state->flush();
    const bool answered = co_await waiting->answered.wait_for(limit);
    if (!answered && !waiting->answer) {
        state->pending.erase(number);
        waiting->answer = Error(ErrorCode::timeout, "the spawner does not answer");
    }
    co_return waiting;
}

Awaitable<Result<CreateReply>> SpawnerClient::ask(CreateRequest request) {
    using Answered = Result<CreateReply>;
    request.request = ++state_->last_number;
    const auto limit = kAnswerTimeout + std::chrono::seconds(request.start_seconds);
    std::string bytes = encode(request);
    auto waiting = co_await exchange(request.request, std::move(bytes), limit);
    Result<Message>& answer = *waiting->answer;
    if (!answer) co_return Answered(answer.error());
    auto* reply = std::get_if<CreateReply>(&*answer);
    if (!reply) co_return Answered(lost());
    co_return Answered(std::move(*reply));
}

template <class Request>
Awaitable<Status> SpawnerClient::demand(Request request, std::chrono::seconds limit) {
    request.request = ++state_->last_number;
    const std::uint64_t number = request.request;
    std::string bytes = encode(Message(std::move(request)));
    auto waiting = co_await exchange(number, std::move(bytes), limit);
    if (!*waiting->answer) co_return Status(waiting->answer->error());
    co_return Status();
}

template <class Request>
Awaitable<Result<std::string>> SpawnerClient::ask_text(Request request) {
    request.request = ++state_->last_number;
    const std::uint64_t number = request.request;
    std::string bytes = encode(Message(std::move(request)));
    auto waiting = co_await exchange(number, std::move(bytes), kAnswerTimeout);
    if (!*waiting->answer) co_return Result<std::string>(waiting->answer->error());
    co_return Result<std::string>(std::move(waiting->text));
}

Awaitable<Result<std::string>> SpawnerClient::output(std::string id) {
    LogsRequest request{0, std::move(id)};
    return ask_text(std::move(request));
}

Awaitable<Result<std::string>> SpawnerClient::view(std::string id) {
    InspectRequest request{0, std::move(id)};
    return ask_text(std::move(request));
}

Awaitable<Result<std::string>> SpawnerClient::slots(std::uint32_t limit) {
    SlotsRequest request{0, limit};
    return ask_text(std::move(request));
}

Awaitable<Status> SpawnerClient::destroy(std::string id) {
    DestroyRequest request{0, std::move(id)};
    return demand(std::move(request), kAnswerTimeout);
}

Awaitable<Status> SpawnerClient::pause(std::string id) {
    PauseRequest request{0, std::move(id)};
    return demand(std::move(request), kAnswerTimeout);
}

Awaitable<Status> SpawnerClient::resume(std::string id) {
    ResumeRequest request{0, std::move(id)};
    return demand(std::move(request), kAnswerTimeout);
}

Awaitable<Status> SpawnerClient::snapshot(std::string id, std::string snapshot, bool for_copies) {
    SnapshotRequest request{0, std::move(id), std::move(snapshot), for_copies};
    return demand(std::move(request), kSnapshotTimeout);
}

Awaitable<Status> SpawnerClient::remove_snapshot(std::string snapshot) {
    RemoveSnapshotRequest request{0, std::move(snapshot)};
    return demand(std::move(request), kAnswerTimeout);
}

Awaitable<Result<std::vector<Observed>>> SpawnerClient::list() {
    using Listed = Result<std::vector<Observed>>;
    const std::uint64_t number = ++state_->last_number;
    ListRequest request{number};
    std::string bytes = encode(request);
    auto waiting = co_await exchange(number, std::move(bytes), kAnswerTimeout);
    if (!*waiting->answer) co_return Listed(waiting->answer->error());
    co_return Listed(std::move(waiting->observed));
}

}  // namespace opensandbox::runtime::native
