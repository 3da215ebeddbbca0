#pragma once

#include "runtime/native/ground/event_loop.hpp"
#include "runtime/native/ground/message_queue.hpp"
#include "runtime/native/host/host.hpp"
#include "runtime/native/spawner/egress/guard_record.hpp"

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::runtime::native {

/// Egress control of a server's sandboxes, as the spawner holds it: an enforcer in a process of its
/// own, started when the first sandbox is to be guarded. It ends with its socket; one that died is
/// replaced, and told of all that live. Meanwhile the packet filter goes on refusing.
class EgressGuard {
  public:
    /// Borrows both.
    EgressGuard(EventLoop& loop, const Host& host);
    ~EgressGuard();
    EgressGuard(const EgressGuard&) = delete;
    EgressGuard& operator=(const EgressGuard&) = delete;

    /// The host's settings. No enforcer begins without: one must not go past an upstream proxy that
    /// it does not know of yet. One with others is replaced.
    void configure(Environment settings);

    /// With what programs inside are to trust besides (PEM; empty: nothing).
    using Guarded = std::function<void(Result<std::string> authority)>;
    /// Answers once its packets are judged; on failure nothing of it is kept.
    void guard(GuardRecord record, Guarded done);
    /// Fine for ids that are not guarded.
    void release(const std::string& id);

    /// What an earlier spawner guarded: of these ids, which live; the rest is forgotten.
    void adopt(const std::function<bool(const std::string& id)>& lives);

    [[nodiscard]] bool guards(const std::string& id) const { return guarded_.contains(id); }
    /// Of its egress API; empty when it is not guarded.
    [[nodiscard]] std::string token(const std::string& id) const;
    /// What holds for it now, without its token: for copies of it.
    [[nodiscard]] EgressTerms terms(const std::string& id) const;

  private:
    struct Waiting {
        std::string id;
        Guarded done;  ///< none: it was guarded before
    };

    /// Nothing while there is one, or one is to be started soon.
    void start();
    Status launch();
    void on_message();
    void restart();
    void ask(const GuardRecord& record, Guarded done);
    void answer(std::uint64_t request, Result<std::string> authority);
    void forget(const std::string& id);
    void fail_waiting(const Error& error);
    void end_process();
    [[nodiscard]] std::filesystem::path directory() const;

    EventLoop* loop_;
    const Host* host_;
    GuardRecords records_;
    std::optional<Environment> settings_;  ///< none until a server has said them
    pid_t pid_ = 0;
    UniqueFd socket_;
    EventLoop::Watch watch_;
    std::unique_ptr<MessageQueue> outgoing_;
    bool restarting_ = false;
    std::uint64_t last_request_ = 0;
    std::map<std::string, GuardRecord> guarded_;
    std::map<std::uint64_t, Waiting> waiting_;
};

}  // namespace opensandbox::runtime::native
