#include "agent/pty/session.hpp"

#include "agent/pty/client.hpp"
#include "base/identifier.hpp"
#include "net/task.hpp"

#include <boost/asio/as_tuple.hpp>

#include <signal.h>

namespace opensandbox::agent {
namespace {

using std::chrono::steady_clock;

/// How far a client may stay behind before the shell has to wait.
constexpr std::size_t kWindow = std::size_t{256} * 1024;
constexpr std::size_t kReadSize = std::size_t{32} * 1024;
constexpr std::chrono::seconds kTakeOverLimit{5};

/// bash without its start files, else sh, which knows no such flags.
std::vector<Program> shells(const std::string& command, std::optional<std::string_view> path) {
    std::vector<std::string> bash{"bash", "--norc", "--noprofile"};
    std::vector<std::string> sh{"sh"};
    for (auto* argv : {&bash, &sh}) {
        if (command.empty()) break;
        argv->push_back("-c");
        argv->push_back(command);
    }
    std::vector<Program> out;
    out.emplace_back(std::move(bash), search_path("bash", path));
    out.emplace_back(std::move(sh), search_path("sh", path));
    return out;
}

}  // namespace

PtySession::PtySession(const ProcessContext& context, std::string id, PtyShell shell)
    : context_(context),
      id_(std::move(id)),
      shell_(std::move(shell)),
      work_(std::make_shared<net::Event>(context.executor)),
      left_(context.executor, steady_clock::time_point::max()) {}

bool PtySession::take(const std::shared_ptr<PtyClient>& client) {
    if (client_) return false;
    client_ = client;
    return true;
}

Awaitable<bool> PtySession::take_over(std::shared_ptr<PtyClient> client) {
    auto self = shared_from_this();
    auto limit = steady_clock::now() + kTakeOverLimit;
    net::Deadline wake(context_.executor, kTakeOverLimit, [self] { self->left_.cancel(); });
    const std::uint64_t turn = ++takeovers_;
    while (true) {
        // Who came later may have found the session free before this one woke up.
        if (turn != takeovers_) {
            client->end_for_another();
            co_return true;
        }
        if (take(client)) co_return true;
        if (removed_ || steady_clock::now() >= limit) co_return false;
        client_->end_for_another();
        co_await left_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
}

bool PtySession::watch(const std::shared_ptr<PtyClient>& client) {
    if (!running() || viewers_.size() >= kMaxViewers) return false;
    viewers_.push_back(client);
    return true;
}

void PtySession::leave(const PtyClient& client) {
    std::erase_if(viewers_, [&](const auto& viewer) { return viewer.get() == &client; });
    if (client_.get() != &client) return;
    client_.reset();
    idle_since_ = now();
    left_.cancel();
    work_->notify();
}

Result<SpawnRequest> PtySession::prepare(PtyProcess::Mode mode) const {
    Environment environment = context_.environment;
    bool terminal = mode == PtyProcess::Mode::terminal;
    if (terminal && !environment.get("TERM")) environment.set("TERM", "xterm-256color");
    SpawnRequest request;
    request.programs = shells(shell_.command, environment.get("PATH"));
    request.environment = environment.entries();
    request.directory = shell_.directory;
    request.credentials = context_.user.credentials();
    return request;
}

Status PtySession::start(PtyProcess::Mode mode) {
    if (process_ || exit_code_) return {};
    Status launched = launch(mode);
    launch_attempted_ = true;
    launch_failed_ = !launched;
    return launched;
}

Status PtySession::launch(PtyProcess::Mode mode) {
    if (context_.stopping) return Error(ErrorCode::unavailable, "the agent is shutting down");
    Result<SpawnRequest> request = prepare(mode);
    if (!request) return request.error();
    auto process = PtyProcess::start(context_.executor, context_.reaper, std::move(*request), mode,
                                     [work = std::weak_ptr(work_)] {
                                         if (auto event = work.lock()) event->notify();
                                     });
    if (!process) return process.error();
    process_ = std::move(*process);
    mode_ = mode;
    ++runs_;
    net::spawn(context_.executor, collect_output(shared_from_this(), process_), "pty output");
    return {};
}

bool PtySession::client_behind() const {
    auto position = client_ ? client_->position() : std::nullopt;
    return position && output_.total() - *position > kWindow;
}

/// Holds its buffer only for so long: most shells are idle most of the time.
void PtySession::read_output(PtyProcess& process) {
    auto buffer = std::make_unique_for_overwrite<char[]>(kReadSize);
    bool any = process.read(output_, std::span(buffer.get(), kReadSize));
    if (any) tell_output();
}

void PtySession::tell_output() {
    if (client_) client_->output_came();
    for (const auto& viewer : viewers_)
        viewer->output_came();
}

/// Runs from the start of a shell until it ended and all of its output was read.
Awaitable<void> PtySession::collect_output(std::shared_ptr<PtySession> session,
                                           std::shared_ptr<PtyProcess> process) {
    PtySession& self = *session;
    while (!process->drained()) {
        if (!self.client_behind()) {
            self.read_output(*process);
            process->arm();
            if (process->ended()) continue;
        }
        co_await self.work_->wait();
    }
    if (const auto& status = process->child().status()) self.exit_code_ = status->client_code();
    self.process_.reset();
    self.idle_since_ = now();
    for (const auto& viewer : self.viewers_)
        viewer->shell_ended(self.exit_code_.value_or(-1));
    self.tell_output();
}

void PtySession::output_taken() {
    work_->notify();
}

void PtySession::remove() {
    removed_ = true;
    if (process_) process_->signal(SIGKILL);
    left_.cancel();
}

Result<std::shared_ptr<PtySession>> PtySessions::create(PtyShell shell) {
    if (sessions_.size() >= kMax && !forget_oldest()) {
        return Error(ErrorCode::resource_exhausted,
                     "there are " + std::to_string(kMax) +
                         " PTY sessions, which is the most: delete one first");
    }
    auto session = std::make_shared<PtySession>(context_, new_uuid(), std::move(shell));
    sessions_.emplace(session->id(), session);
    return session;
}

std::shared_ptr<PtySession> PtySessions::find(const std::string& id) const {
    auto at = sessions_.find(id);
    return at == sessions_.end() ? nullptr : at->second;
}

bool PtySessions::remove(const std::string& id) {
    auto at = sessions_.find(id);
    if (at == sessions_.end()) return false;
    at->second->remove();
    sessions_.erase(at);
    return true;
}

void PtySessions::sweep(Timestamp time) {
    std::erase_if(sessions_, [&](const auto& item) {
        const PtySession& session = *item.second;
        return session.idle() && time - session.idle_since() > kRetention;
    });
}

bool PtySessions::forget_oldest() {
    auto oldest = sessions_.end();
    for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
        if (!at->second->ended()) continue;
        if (oldest == sessions_.end() || at->second->idle_since() < oldest->second->idle_since()) {
            oldest = at;
        }
    }
    if (oldest == sessions_.end()) return false;
    sessions_.erase(oldest);
    return true;
}

std::size_t PtySessions::signal_all(int number) const {
    std::size_t running = 0;
    for (const auto& [id, session] : sessions_) {
        if (!session->running()) continue;
        ++running;
        if (number == SIGTERM) session->process()->signal(SIGHUP);
        if (number != 0) session->process()->signal(number);
    }
    return running;
}

}  // namespace opensandbox::agent
