#include "runtime/native/sandbox_table.hpp"

#include "base/log.hpp"
#include "runtime/native/message_socket.hpp"
#include "runtime/native/overlay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <iterator>
#include <unistd.h>

namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

/// A slot that has not answered by then is given up.
constexpr auto start_timeout = 30s;
/// A process that has not died of SIGKILL by then is reported; it goes when the kernel lets it.
constexpr auto kill_timeout = 10s;

/// The agent's socket, in the host's network namespace, on a port of the kernel's choice.
Result<UniqueFd> listen_on(const std::string& host, std::uint16_t& port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
        return Error(ErrorCode::invalid_argument, "publish host " + host + ": an IPv4 address");
    }
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return last_error("socket");
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (::bind(fd.get(), generic, size) < 0) return last_error("bind " + host);
    if (::listen(fd.get(), 4096) < 0) return last_error("listen");
    if (::getsockname(fd.get(), generic, &size) < 0) return last_error("getsockname");
    port = ntohs(address.sin_port);
    return fd;
}

}  // namespace

void SandboxTable::create(CreateRequest request, Created done) {
    if (sandboxes_.contains(request.id)) {
        done(Error(ErrorCode::conflict, "sandbox " + request.id + " exists already"));
        return;
    }
    auto sandbox = std::make_shared<Sandbox>();
    sandbox->id = request.id;
    sandbox->request = std::move(request);
    sandbox->created = std::move(done);
    sandboxes_.emplace(sandbox->id, sandbox);
    pool_->begin_service();
    pool_->take([this, sandbox](Result<SlotParts> parts) {
        if (!parts) {
            sandbox->failure = parts.error();
            forget(sandbox, {});
            return;
        }
        const bool unwanted = !sandbox->destroyed.empty();
        if (auto status = activate(*sandbox, std::move(*parts)); !status) {
            fail(sandbox, status.error());
            return;
        }
        sandbox->control_watch = loop_->watch(sandbox->parts.control.get(), EPOLLIN,
                                              [this, sandbox](std::uint32_t) { on_slot(sandbox); });
        watch_death(sandbox);
        if (unwanted) return fail(sandbox, Error(ErrorCode::cancelled, "destroyed meanwhile"));
        loop_->run_after(start_timeout, [this, weak = std::weak_ptr(sandbox)] {
            const auto late = weak.lock();
            if (late && late->state == State::starting) {
                fail(late, Error(ErrorCode::timeout, "the sandbox did not start in time"));
            }
        });
    });
}

/// What the slot gets: the listener, its root, and for the host's image a /usr.
Result<std::vector<UniqueFd>> SandboxTable::build_parts(Sandbox& sandbox) const {
    std::vector<UniqueFd> out;
    auto listener = listen_on(host_->options.publish_host, sandbox.port);
    if (!listener) return listener.error().within("listener");
    out.push_back(std::move(*listener));
    OverlaySpec spec;
    spec.lowers = sandbox.request.layers;
    spec.user_namespace = sandbox.parts.user_namespace.get();
    spec.shift_lowers = host_->shift_ids;
    spec.base = sandbox.parts.base.get();
    spec.id_base = host_->id_base(sandbox.parts.slot);
    auto root = build_overlay(spec);
    if (!root) return root.error().within("root");
    out.push_back(std::move(root->mount));
    sandbox.scaffold = std::move(root->scaffold);
    if (sandbox.request.usr.empty()) return out;
    if (sandbox.request.usr != "/usr") {
        return Error(ErrorCode::unsupported, "usr: only the host's own can be shared");
    }
    out.push_back(std::move(sandbox.parts.usr));
    return out;
}

Status SandboxTable::activate(Sandbox& sandbox, SlotParts parts) {
    sandbox.state = State::starting;
    sandbox.parts = std::move(parts);
    auto built = build_parts(sandbox);
    if (!built) return built.error();
    const auto cgroup = SlotCgroup::adopt(host_->cgroups, slot_name(sandbox.parts.slot));
    if (auto s = cgroup.set_limits(sandbox.request.limits); !s) return s.error().within("limits");
    std::string bytes = encode(sandbox.request);
    std::vector<int> descriptors;
    for (const UniqueFd& fd : *built)
        descriptors.push_back(fd.get());
    auto sent = send_message(sandbox.parts.control.get(), bytes, descriptors);
    // The token is the slot's alone from here on: later slots are copies of this process.
    ::explicit_bzero(bytes.data(), bytes.size());
    ::explicit_bzero(sandbox.request.agent_token.data(), sandbox.request.agent_token.size());
    sandbox.request = {};
    if (!sent) return sent.error().within("slot");
    std::ranges::move(*built, std::back_inserter(sandbox.scaffold));
    // While the slot works.
    sandbox.start_time = process_start_time(sandbox.parts.pid).value_or(0);
    return journal_.write(journal_entry(sandbox));
}

JournalEntry SandboxTable::journal_entry(const Sandbox& sandbox) const {
    JournalEntry entry;
    entry.id = sandbox.id;
    entry.slot = sandbox.parts.slot;
    entry.pid = sandbox.parts.pid;
    entry.start_time = sandbox.start_time;
    entry.port = sandbox.port;
    entry.exit = sandbox.exit;
    return entry;
}

void SandboxTable::on_slot(const Entry& sandbox) {
    auto received = receive_message(sandbox->parts.control.get());
    const auto message =
        received && !received->closed ? decode(received->bytes) : Result<Message>(Error());
    if (message && std::holds_alternative<SlotReady>(*message)) return on_ready(*sandbox);
    if (message) {
        if (const auto* failed = std::get_if<FailedReply>(&*message)) {
            return fail(sandbox, failed->error);
        }
    }
    fail(sandbox, Error(ErrorCode::internal, "the sandbox ended before it was ready"));
}

void SandboxTable::on_ready(Sandbox& sandbox) {
    sandbox.control_watch.reset();
    sandbox.parts.control.reset();
    sandbox.parts.user_namespace.reset();
    // Dissolving mounts costs; that waits for a quiet moment.
    auto scaffold = std::make_shared<std::vector<UniqueFd>>(std::move(sandbox.scaffold));
    scaffold->push_back(std::move(sandbox.parts.base));
    scaffold->push_back(std::move(sandbox.parts.usr));
    loop_->run_after(30ms, [scaffold] { scaffold->clear(); });
    if (sandbox.state != State::starting) return;
    sandbox.state = State::running;
    answer(sandbox, sandbox.port);
}

void SandboxTable::answer(Sandbox& sandbox, Result<std::uint16_t> port) {
    if (!sandbox.created) return;
    pool_->end_service();
    std::exchange(sandbox.created, nullptr)(std::move(port));
}

void SandboxTable::fail(const Entry& sandbox, Error error) {
    if (sandbox->failure || sandbox->state == State::removing) return;
    sandbox->control_watch.reset();
    sandbox->failure = std::move(error);
    log::warn("sandbox did not start",
              {{"sandbox", sandbox->id}, {"reason", sandbox->failure->message()}});
    (void)signal_process(sandbox->parts.pidfd.get(), SIGKILL);
    watch_death(sandbox);
}

void SandboxTable::watch_death(const Entry& sandbox) {
    if (sandbox->death_watch) return;
    sandbox->death_watch = loop_->watch(sandbox->parts.pidfd.get(), EPOLLIN,
                                        [this, sandbox](std::uint32_t) { on_death(sandbox); });
}

void SandboxTable::on_death(const Entry& sandbox) {
    sandbox->death_watch.reset();
    const auto end = process_end(sandbox->parts.pidfd.get());
    // An adopted process is init's child: its end can be read only once init has reaped it, and
    // some reap once a second.
    const bool wanted = !sandbox->failure && sandbox->destroyed.empty();
    if (!end && wanted && ++sandbox->death_checks < 300) {
        loop_->run_after(sandbox->death_checks < 200 ? 5ms : 50ms,
                         [this, weak = std::weak_ptr(sandbox)] {
                             if (const auto held = weak.lock()) on_death(held);
                         });
        return;
    }
    pool_->note_activity();
    if (sandbox->state == State::starting && !sandbox->failure) {
        sandbox->failure = Error(ErrorCode::internal, "the sandbox ended before it was ready");
    }
    sandbox->control_watch.reset();
    if (sandbox->failure || !sandbox->destroyed.empty()) return remove(sandbox);
    sandbox->exit = explain(*sandbox, end.value_or(ProcessEnd{-1, 0}));
    sandbox->state = State::exited;
    log::info("sandbox ended", {{"sandbox", sandbox->id},
                                {"code", sandbox->exit->code},
                                {"signal", sandbox->exit->signal},
                                {"reason", sandbox->exit->reason}});
    if (auto s = journal_.write(journal_entry(*sandbox)); !s) {
        log::error("exit is not journalled",
                   {{"sandbox", sandbox->id}, {"reason", s.error().message()}});
    }
    if (exited_) exited_(sandbox->id, *sandbox->exit);
}

Exit SandboxTable::explain(const Sandbox& sandbox, ProcessEnd end) const {
    Exit exit;
    exit.code = end.code;
    exit.signal = end.signal;
    exit.at = now();
    const auto events = SlotCgroup::adopt(host_->cgroups, slot_name(sandbox.parts.slot)).events();
    const bool killed = end.signal == SIGKILL || end.code == 128 + SIGKILL;
    if (killed && events.oom_kills > 0) {
        exit.reason = "OOM_KILLED";
        exit.message = "the memory limit was passed and the kernel ended a process";
    } else if (end.signal == SIGKILL) {
        exit.reason = "AGENT_KILLED";
        exit.message = "the agent was killed from outside";
    } else if (end.signal != 0) {
        exit.reason = "AGENT_CRASHED";
        exit.message = "the agent died of signal " + std::to_string(end.signal);
    } else if (end.code < 0) {
        exit.reason = "EXIT_UNKNOWN";
        exit.message = "ended while nobody was watching";
    }
    if (end.code != 0 && events.pids_refused > 0) {
        if (!exit.message.empty()) exit.message += "; ";
        exit.message +=
            "the limit of processes was hit " + std::to_string(events.pids_refused) + " times";
    }
    return exit;
}

void SandboxTable::destroy(const std::string& id, Done done) {
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end()) return done({});
    const Entry sandbox = found->second;
    sandbox->destroyed.push_back(std::move(done));
    if (sandbox->state == State::exited) return remove(sandbox);
    if (sandbox->state != State::starting && sandbox->state != State::running) return;
    if (sandbox->state == State::starting) {
        return fail(sandbox, Error(ErrorCode::cancelled, "destroyed while it started"));
    }
    (void)signal_process(sandbox->parts.pidfd.get(), SIGKILL);
    loop_->run_after(kill_timeout, [weak = std::weak_ptr(sandbox)] {
        const auto held = weak.lock();
        if (!held || held->state != State::running) return;
        for (Done& waiting : std::exchange(held->destroyed, {})) {
            waiting(Error(ErrorCode::timeout, "the sandbox's processes do not end"));
        }
        held->destroyed.emplace_back([](const Status&) {});
    });
}

void SandboxTable::remove(const Entry& sandbox) {
    if (sandbox->state == State::removing) return;
    sandbox->state = State::removing;
    sandbox->control_watch.reset();
    sandbox->death_watch.reset();
    const SlotId slot = sandbox->parts.slot;
    // Mounts and namespaces go with the last descriptor.
    sandbox->parts = {};
    sandbox->scaffold.clear();
    pool_->remove(slot, [this, sandbox](const Status& status) { forget(sandbox, status); });
}

void SandboxTable::forget(const Entry& sandbox, const Status& status) {
    journal_.remove(sandbox->id);
    sandboxes_.erase(sandbox->id);
    if (sandbox->failure) answer(*sandbox, *sandbox->failure);
    for (Done& done : std::exchange(sandbox->destroyed, {}))
        done(status);
}

std::vector<Observed> SandboxTable::list() const {
    std::vector<Observed> out;
    for (const auto& [id, sandbox] : sandboxes_) {
        if (sandbox->state == State::waiting || sandbox->state == State::removing) continue;
        if (sandbox->failure) continue;
        Observed& item = out.emplace_back();
        item.id = id;
        item.endpoints.agent = {host_->options.publish_host, sandbox->port};
        item.exit = sandbox->exit;
    }
    return out;
}

Result<std::vector<SlotId>> SandboxTable::adopt() {
    auto entries = journal_.read_all();
    if (!entries) return entries.error();
    std::vector<SlotId> slots;
    for (const JournalEntry& entry : *entries) {
        adopt_one(entry);
        slots.push_back(entry.slot);
    }
    return slots;
}

void SandboxTable::adopt_one(const JournalEntry& entry) {
    auto sandbox = std::make_shared<Sandbox>();
    sandbox->id = entry.id;
    sandbox->port = entry.port;
    sandbox->parts.slot = entry.slot;
    sandbox->parts.pid = entry.pid;
    sandbox->start_time = entry.start_time;
    sandbox->exit = entry.exit;
    sandbox->state = State::exited;
    sandboxes_.emplace(entry.id, sandbox);
    if (entry.exit) return;
    // Only this order is safe: the descriptor first, then whether it is still the same process.
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, entry.pid, 0)));
    if (pidfd && process_start_time(entry.pid) == entry.start_time) {
        sandbox->parts.pidfd = std::move(pidfd);
        sandbox->state = State::running;
        watch_death(sandbox);
        return;
    }
    sandbox->exit = explain(*sandbox, {-1, 0});
    (void)journal_.write(journal_entry(*sandbox));
}

}  // namespace opensandbox::runtime::native
