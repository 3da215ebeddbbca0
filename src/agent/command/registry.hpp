#pragma once

#include "agent/command/output_store.hpp"
#include "agent/process/reaper.hpp"
#include "base/clock.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace opensandbox::agent {

class Execution;

/// What is known of one command, running or ended (execd contract 3.5).
struct CommandRecord {
    std::string id;
    std::uint64_t number = 0;  ///< of the commands of this agent, in the order of their start
    std::string content;       ///< the command as requested, cut at 16 KiB
    Timestamp started_at{};
    std::optional<Timestamp> finished_at;
    std::optional<int> exit_code;
    std::string error;             ///< empty after success
    std::shared_ptr<Child> child;  ///< while it runs
    bool background = false;
    std::shared_ptr<OutputFile> output;  ///< of background commands
    /// Of foreground commands: what a reader can come back to, while it runs and a little longer.
    std::shared_ptr<Execution> execution;

    [[nodiscard]] bool running() const { return child != nullptr; }
    /// The answer of the status route.
    [[nodiscard]] std::string status_json() const;
    /// Appends what a listing shows of it, as JSON.
    void append_inventory_item(std::string& out) const;
};

/// The commands of this agent. Those that ended are kept for 24 hours, and of them at most the
/// last `kMaxEnded` with `kMaxEndedText` bytes of text; running ones always.
class CommandRegistry {
  public:
    static constexpr std::size_t kMaxEnded = 10'000;
    /// What they ran and why they failed, together.
    static constexpr std::size_t kMaxEndedText = std::size_t{8} << 20;
    static constexpr std::chrono::hours kRetention{24};
    /// Of foreground commands that ended, the output of so many can still be had.
    static constexpr std::size_t kMaxStreams = 8;

    explicit CommandRegistry(std::string temporary_directory)
        : files_(std::move(temporary_directory)) {}

    /// Is told of every command that ended or could not be started.
    using Observer = std::function<void(const CommandRecord&)>;
    void observe(Observer observer) { observer_ = std::move(observer); }

    /// A record for a command about to start, with a new id.
    std::shared_ptr<CommandRecord> add(std::string_view content);
    /// A file for the record's output.
    Status open_output(CommandRecord& record);
    /// The command runs; the record learns of its end by itself.
    void started(const std::shared_ptr<CommandRecord>& record, std::shared_ptr<Child> child);
    /// The command could not be started: exit code 255 and the reason.
    void failed(const std::shared_ptr<CommandRecord>& record, std::string reason);

    [[nodiscard]] std::shared_ptr<CommandRecord> find(const std::string& id) const;
    /// Hands out the commands, the latest first, until `take` returns false; with `before` only
    /// those with a smaller number.
    void each_latest_first(std::optional<std::uint64_t> before,
                           const std::function<bool(const CommandRecord&)>& take) const;
    /// Forgets what ended more than 24 hours before `time`, and limits the output that is kept.
    void sweep(Timestamp time);
    /// Sends a signal to the group of every running command; returns how many there are.
    std::size_t signal_all(int number) const;
    [[nodiscard]] std::size_t size() const { return records_.size(); }

  private:
    void finished(const std::shared_ptr<CommandRecord>& record);
    void forget_oldest_stream();
    void forget_oldest();

    OutputDirectory files_;
    Observer observer_;
    std::unordered_map<std::string, std::shared_ptr<CommandRecord>> records_;
    std::map<std::uint64_t, const CommandRecord*> by_number_;  ///< the same ones
    std::uint64_t last_number_ = 0;
    std::list<std::shared_ptr<CommandRecord>> ended_;  ///< oldest first
    std::size_t ended_text_ = 0;                       ///< bytes
    std::list<std::weak_ptr<CommandRecord>> streams_;  ///< of ended ones, oldest first
};

}  // namespace opensandbox::agent
