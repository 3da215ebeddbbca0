#pragma once

#include "runtime/native/event_loop.hpp"
#include "runtime/native/host.hpp"
#include "runtime/native/journal.hpp"
#include "runtime/native/kernel.hpp"
#include "runtime/native/slot_pool.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// All sandboxes of a spawner, from the request to the last trace.
class SandboxTable {
  public:
    /// Borrows all.
    SandboxTable(EventLoop& loop, const Host& host, SlotPool& pool, Journal journal)
        : loop_(&loop), host_(&host), pool_(&pool), journal_(std::move(journal)) {}

    /// Takes back what lives or died since an earlier spawner; returns the slots to keep.
    Result<std::vector<SlotId>> adopt();

    using Created = std::function<void(Result<std::uint16_t> port)>;
    using Done = std::function<void(Status)>;
    using Exited = std::function<void(const std::string& id, const Exit&)>;

    /// Answers when a command works in it, or when after a failure nothing is left of it.
    void create(CreateRequest request, Created done);
    /// Answers when nothing is left.
    void destroy(const std::string& id, Done done);
    [[nodiscard]] std::vector<Observed> list() const;
    [[nodiscard]] std::size_t size() const { return sandboxes_.size(); }
    void on_exit(Exited listener) { exited_ = std::move(listener); }

  private:
    enum class State : std::uint8_t { waiting, starting, running, exited, removing };
    struct Sandbox {
        std::string id;
        State state = State::waiting;
        CreateRequest request;  ///< until sent to the slot
        Created created;        ///< until answered
        std::vector<Done> destroyed;
        SlotParts parts;
        std::uint64_t start_time = 0;
        std::uint16_t port = 0;
        std::optional<Exit> exit;
        std::optional<Error> failure;  ///< of the creation, told once all is removed
        EventLoop::Watch control_watch;
        EventLoop::Watch death_watch;
        int death_checks = 0;
        std::vector<UniqueFd> scaffold;  ///< of its mounts, dropped when nobody waits
    };
    using Entry = std::shared_ptr<Sandbox>;

    Status activate(Sandbox& sandbox, SlotParts parts);
    Result<std::vector<UniqueFd>> build_parts(Sandbox& sandbox) const;
    [[nodiscard]] JournalEntry journal_entry(const Sandbox& sandbox) const;
    void watch_death(const Entry& sandbox);
    void on_slot(const Entry& sandbox);
    void on_ready(Sandbox& sandbox);
    void answer(Sandbox& sandbox, Result<std::uint16_t> port);
    void fail(const Entry& sandbox, Error error);
    void on_death(const Entry& sandbox);
    [[nodiscard]] Exit explain(const Sandbox& sandbox, ProcessEnd end) const;
    void remove(const Entry& sandbox);
    void forget(const Entry& sandbox, const Status& status);
    void adopt_one(const JournalEntry& entry);

    EventLoop* loop_;
    const Host* host_;
    SlotPool* pool_;
    Journal journal_;
    Exited exited_;
    std::map<std::string, Entry> sandboxes_;
};

}  // namespace opensandbox::runtime::native
