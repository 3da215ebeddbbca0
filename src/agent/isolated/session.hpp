#pragma once

#include "agent/command/output_store.hpp"
#include "agent/isolated/namespaces.hpp"
#include "agent/isolated/preparation.hpp"
#include "agent/process/enclosure.hpp"
#include "base/clock.hpp"
#include "net/task.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::agent {

/// One background run (execd contract 9).
struct BackgroundRun {
    std::string id;
    Timestamp started_at{};
    std::optional<Timestamp> finished_at;
    std::optional<int> exit_code;
    std::string error;
    std::shared_ptr<Child> child;  ///< while it runs
    std::shared_ptr<OutputFile> output;

    [[nodiscard]] std::string status_json(const std::string& session) const;
};

/// One isolated session: namespaces that live until it is deleted, left idle, or the agent ends.
class IsolatedSession : public std::enable_shared_from_this<IsolatedSession> {
  public:
    enum class State : unsigned char { active, dead, destroyed };

    IsolatedSession(asio::any_io_executor executor, std::string id, IsolatedSessionRequest request,
                    Preparation preparation, std::shared_ptr<SessionNamespaces> namespaces,
                    Enclosure walls);
    IsolatedSession(const IsolatedSession&) = delete;
    IsolatedSession& operator=(const IsolatedSession&) = delete;

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] const IsolatedSessionRequest& request() const { return request_; }
    [[nodiscard]] State state() const;
    [[nodiscard]] Timestamp created_at() const { return created_at_; }
    /// `{"session_id","created_at",…the request}`.
    [[nodiscard]] std::string created_json() const;
    /// `{"status",…}`; `summary` has the id and no request.
    [[nodiscard]] std::string state_json(bool summary) const;

    [[nodiscard]] SessionNamespaces& namespaces() { return *namespaces_; }
    [[nodiscard]] const Enclosure& enclosure() const { return enclosure_; }
    /// Every run gets it; before the first one.
    void restrict(UniqueFd landlock) {
        landlock_ = std::move(landlock);
        enclosure_.landlock = landlock_.get();
    }
    /// Paths that runs may write to, or below.
    [[nodiscard]] std::vector<std::string> writable_paths() const;
    [[nodiscard]] std::vector<SessionOverlay>& overlays() { return overlays_; }
    [[nodiscard]] const SessionDirectory& directory() const { return directory_; }
    /// The deepest mount that a path lies in; empty for a foreign path.
    struct Place {
        std::string path;
        bool writable;
    };
    [[nodiscard]] std::optional<Place> place_of(std::string_view path) const;

    /// Mounts of the session below this one, shallow ones first.
    [[nodiscard]] std::vector<std::string> places_below(std::string_view path) const;

    /// Foreground runs, commits and the like follow one another. Held while it exists.
    class Turn {
      public:
        explicit Turn(std::shared_ptr<IsolatedSession> session) : session_(std::move(session)) {}
        Turn(Turn&&) noexcept = default;
        Turn& operator=(Turn&&) = delete;
        ~Turn();

      private:
        std::shared_ptr<IsolatedSession> session_;
    };
    /// Waits for the turn. The session may have ended by then.
    static Awaitable<Turn> take_turn(std::shared_ptr<IsolatedSession> session);

    void add(std::shared_ptr<BackgroundRun> run);
    [[nodiscard]] std::shared_ptr<BackgroundRun> find(const std::string& run) const;
    [[nodiscard]] bool has_running_background() const;
    /// A run began or ended, files were used: the idle time starts anew.
    void touch(bool run);
    /// Called once the session was idle for too long.
    void on_idle(std::function<void()> action) {
        idle_action_ = std::move(action);
        arm();
    }

    /// Set when the uppers hold more than they may: new runs are refused.
    bool over_limit = false;
    /// While the directories below the overlays are being changed.
    bool committing = false;

    /// Kills all that runs inside, waits until it is gone; idempotent.
    static Awaitable<void> end(std::shared_ptr<IsolatedSession> session);
    /// The directory with the uppers, for whoever removes it.
    SessionDirectory take_directory() { return std::move(directory_); }
    /// Without waiting, when the agent ends.
    void kill() { namespaces_->kill(); }

  private:
    void arm();
    [[nodiscard]] bool busy() const { return running_ || has_running_background(); }

    static constexpr std::size_t kMaxRuns = 256;

    asio::any_io_executor executor_;
    std::string id_;
    IsolatedSessionRequest request_;
    SessionDirectory directory_;
    std::vector<SessionOverlay> overlays_;
    std::vector<Place> places_;
    std::shared_ptr<SessionNamespaces> namespaces_;
    Enclosure enclosure_;
    UniqueFd landlock_;
    Timestamp created_at_;
    Timestamp last_run_at_;
    std::chrono::steady_clock::time_point active_at_;
    bool destroyed_ = false;
    bool running_ = false;
    std::deque<std::shared_ptr<net::Event>> waiting_;
    std::map<std::string, std::shared_ptr<BackgroundRun>> runs_;
    std::deque<std::string> run_order_;
    std::optional<net::Deadline> idle_;
    std::function<void()> idle_action_;
};

}  // namespace opensandbox::agent
