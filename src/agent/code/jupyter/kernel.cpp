#include "agent/code/jupyter/kernel.hpp"

#include "base/identifier.hpp"
#include "base/scope_exit.hpp"

namespace opensandbox::agent::jupyter {
namespace {

RunEnd lost(const std::string& why) {
    return {"KernelConnectionError", why, {why}};
}

}  // namespace

JupyterKernel::JupyterKernel(std::shared_ptr<Server> server, Session session)
    : server_(std::move(server)), session_(std::move(session)), channel_session_(new_hex_id()) {}

Awaitable<Status> JupyterKernel::run(std::string code, std::shared_ptr<EventPump> pump) {
    auto self = shared_from_this();
    auto run = std::make_shared<Run>(server_->executor(), new_hex_id(), pump);
    std::string request = execute_request(run->message_id(), channel_session_, code);
    code = {};
    Status submitted = co_await self->submit(run, std::move(request));
    if (!submitted) co_return submitted;
    self->run_ = run;
    RunEnd end = co_await self->follow(run);
    self->run_.reset();
    if (self->channel_) self->channel_->deliver_to(nullptr);
    pump->end(std::move(end));
    co_return Status();
}

Awaitable<Status> JupyterKernel::connect(std::shared_ptr<Run> run) {
    if (gone_) co_return Error(ErrorCode::not_found, "the kernel was shut down");
    if (channel_ && channel_->is_open()) {
        channel_->deliver_to(run);
        co_return Status();
    }
    channel_.reset();
    auto opened = co_await Channel::open(server_, session_.kernel_id, channel_session_, run);
    if (gone_) co_return Error(ErrorCode::not_found, "the kernel was shut down");
    if (opened) {
        channel_ = std::move(*opened);
        co_return Status();
    }
    Error failure = opened.error();
    if (failure.code() == ErrorCode::bad_gateway) {
        auto state = co_await server_->kernel_state(session_.kernel_id);
        if (!state && state.error().code() == ErrorCode::not_found) {
            gone_ = true;
            co_return state.error();
        }
    }
    co_return failure;
}

Awaitable<Status> JupyterKernel::submit(std::shared_ptr<Run> run, std::string request) {
    const bool kept = channel_ && channel_->is_open();
    Status ready = co_await connect(run);
    if (!ready) co_return ready;
    std::shared_ptr<Channel> channel = channel_;
    Status sent = co_await channel->send(request);
    if (sent || !kept) co_return sent;
    // The kept connection had ended unnoticed; nothing whole was sent over it.
    channel->close();
    (void)run->take_loss();
    ready = co_await connect(run);
    if (!ready) co_return ready;
    channel = channel_;
    co_return co_await channel->send(request);
}

Awaitable<RunEnd> JupyterKernel::follow(std::shared_ptr<Run> run) {
    std::size_t heard_before_loss = 0;
    bool reconnected = false;
    bool was_idle = false;
    while (!run->over()) {
        const Limits& limits = server_->limits();
        const std::size_t heard = run->heard();
        bool changed = co_await run->changed(run->half_over() ? limits.lost_reply : limits.check);
        if (gone_) co_return lost("the kernel was shut down");
        if (run->over()) break;
        if (run->take_loss()) {  // Once for each time that it was of use.
            if (reconnected && run->heard() == heard_before_loss) {
                co_return lost("the connection to the kernel was lost again");
            }
            reconnected = true;
            heard_before_loss = run->heard();
            Status resumed = co_await connect(run);
            if (!resumed) {
                Error why = resumed.error().within("the connection to the kernel was lost");
                co_return lost(why.message());
            }
        } else if (!changed && run->heard() == heard && !run->busy()) {
            if (run->half_over()) break;
            bool idle = false;
            Status checked = co_await check(run, was_idle, idle);
            if (!checked) co_return lost(checked.error().message());
            was_idle = idle;
            continue;
        }
        was_idle = false;
    }
    co_return run->take_end();
}

Awaitable<Status> JupyterKernel::check(std::shared_ptr<Run> run, bool was_idle, bool& idle) {
    const std::size_t heard = run->heard();
    auto state = co_await server_->kernel_state(session_.kernel_id);
    if (!state) {
        if (state.error().code() == ErrorCode::not_found) gone_ = true;
        co_return state.error();
    }
    if (run->heard() != heard) co_return Status();
    if (*state == "dead") co_return Error(ErrorCode::unavailable, "the kernel died");
    idle = *state == "idle";
    if (idle && was_idle) {
        co_return Error(ErrorCode::bad_gateway,
                        "the kernel is idle and never answered: its reply was lost");
    }
    co_return Status();
}

Awaitable<Status> JupyterKernel::interrupt() {
    if (!run_) co_return Status();
    auto self = shared_from_this();
    co_return co_await self->server_->interrupt(self->session_.kernel_id);
}

Awaitable<Status> JupyterKernel::shut_down() {
    auto self = shared_from_this();
    self->gone_ = true;
    if (self->run_) self->run_->connection_lost();
    if (self->channel_) self->channel_->close();
    co_return co_await self->server_->delete_session(self->session_.id);
}

}  // namespace opensandbox::agent::jupyter
