#include "agent/session/session.hpp"

#include "agent/process/environment_file.hpp"
#include "base/identifier.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace opensandbox::agent {
namespace {

bool is_program(const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 0111) != 0;
}

bool has_program(std::string_view name, std::optional<std::string_view> path) {
    return std::ranges::any_of(search_path(name, path), is_program);
}

/// Variables that a shell cannot have but passes on, and those that it needs to find programs.
std::vector<std::string> entries_beside_state(const Environment& environment) {
    std::vector<std::string> out;
    for (std::string& entry : environment.entries()) {
        std::string_view name = std::string_view(entry).substr(0, entry.find('='));
        bool function = name.starts_with("BASH_FUNC_");
        if (name == "PATH" || (!is_identifier(name) && !function)) out.push_back(std::move(entry));
    }
    return out;
}

const std::string* find_pair(const Environment::Pairs& pairs, const std::string& name) {
    auto at = std::ranges::find(pairs, name, &Environment::Pairs::value_type::first);
    return at == pairs.end() ? nullptr : &at->second;
}

/// Later pairs win; the agent's token never reaches a shell.
Environment::Pairs read_file_pairs(const Environment& environment) {
    Environment::Pairs pairs;
    for (auto& [name, value] : read_environment_file(environment)) {
        if (name == "EXECD_ACCESS_TOKEN") continue;
        std::erase_if(pairs, [&](const auto& pair) { return pair.first == name; });
        pairs.emplace_back(std::move(name), std::move(value));
    }
    return pairs;
}

}  // namespace

Session::Session(const ProcessContext& context, StateBudget& budget, const RunObserver& observer,
                 std::string id, std::string directory)
    : context_(context),
      budget_(budget),
      observer_(observer),
      id_(std::move(id)),
      directory_(std::move(directory)) {}

Session::~Session() {
    if (state_) budget_.replace(state_->size(), 0);
}

Result<std::shared_ptr<SessionRun>> Session::add(SessionRequest request, LineForm form) {
    if (waiting_.size() >= kMaxWaiting) {
        return Error(
            ErrorCode::resource_exhausted,
            "session " + id_ + " has " + std::to_string(kMaxWaiting) + " runs waiting already");
    }
    auto run = std::make_shared<SessionRun>(context_.executor, id_, std::move(request), form);
    waiting_.push_back(run);
    start_next();
    return run;
}

void Session::start_next() {
    while (!current_ && !waiting_.empty()) {
        std::shared_ptr<SessionRun> run = std::move(waiting_.front());
        waiting_.pop_front();
        if (Status started = start(run); !started) {
            const std::string reason = started.error().message();
            run->end({"CommandExecError", reason, {reason}});
            measure(*run);
        }
    }
}

Status Session::start(const std::shared_ptr<SessionRun>& run) {
    ShellProgram program;
    Result<SpawnRequest> shell = prepare_shell(*run, program);
    if (!shell) return shell.error();
    current_ = run;
    Status started =
        run->start(context_.reaper, std::move(*shell), program.text_for_shell(),
                   [weak = weak_from_this(), run_weak = std::weak_ptr<SessionRun>(run)] {
                       auto self = weak.lock();
                       auto ended = run_weak.lock();
                       if (self && ended) self->finished(ended);
                   });
    if (!started) current_.reset();
    return started;
}

Result<SpawnRequest> Session::prepare_shell(SessionRun& run, ShellProgram& program) {
    auto path = context_.environment.get("PATH");
    if (!state_) kind_ = has_program("bash", path) ? ShellKind::bash : ShellKind::posix;
    applying_ = read_file_pairs(context_.environment);
    mark_ = new_hex_id();
    program.kind = *kind_;
    program.state = state_ ? &*state_ : nullptr;
    program.directory = run.request().directory;
    program.text = run.request().text;
    program.mark = mark_;

    Environment environment = context_.environment;
    environment.merge(applying_);
    SpawnRequest shell;
    shell.programs.push_back(program_of(shell_arguments(*kind_), path));
    struct stat info{};
    // Later runs go to their directory by themselves; this one may be gone by then.
    if (!state_ || ::stat(directory_.c_str(), &info) == 0) shell.directory = directory_;
    if (state_) {
        // What a run changed stays so until the file says something new.
        for (const auto& [name, value] : applying_) {
            const std::string* former = find_pair(applied_, name);
            if (is_identifier(name) && (!former || *former != value)) {
                program.exports.emplace_back(name, value);
            }
        }
        shell.environment = entries_beside_state(environment);
    } else {
        shell.environment = environment.entries();
    }
    shell.credentials = context_.user.credentials();
    return shell;
}

void Session::finished(const std::shared_ptr<SessionRun>& run) {
    if (!closed_) keep(*run);
    run->end();
    measure(*run);
    current_.reset();
    start_next();
}

void Session::measure(const SessionRun& run) const {
    if (observer_) observer_(run);
}

void Session::keep(SessionRun& run) {
    std::optional<ShellState> state = run.take_state(mark_);
    // A directory of the run's own is left behind unless the text went somewhere else.
    if (state && state->directory == run.request().directory) {
        state->directory = state_ ? state_->directory : directory_;
    }
    bool fits = !run.state_too_large();
    if (fits && state) fits = budget_.replace(state_ ? state_->size() : 0, state->size());
    if (!fits) {
        run.say("opensandbox: what this run changed in the session is too large to be kept\n");
        return;
    }
    if (!state) return;
    state_ = std::move(state);
    applied_ = std::move(applying_);
}

void Session::abandon(const std::shared_ptr<SessionRun>& run) {
    std::erase(waiting_, run);
    if (run == current_) run->kill({"CommandExecError", "-1", {"the client went away"}});
    run->release_outputs();
}

void Session::close() {
    closed_ = true;
    RunEnd why{"CommandExecError", "-1", {"the session was deleted"}};
    for (const auto& run : std::exchange(waiting_, {}))
        run->end(why);
    if (current_) current_->kill(std::move(why));
}

Result<std::shared_ptr<Session>> SessionTable::create(std::string directory) {
    if (sessions_.size() >= kMaxSessions) {
        return Error(ErrorCode::resource_exhausted,
                     "there are " + std::to_string(kMaxSessions) +
                         " sessions already; delete one that is not needed any more");
    }
    std::string id = new_uuid();
    auto session =
        std::make_shared<Session>(context_, budget_, observer_, id, std::move(directory));
    sessions_.emplace(std::move(id), session);
    return session;
}

std::shared_ptr<Session> SessionTable::find(const std::string& id) const {
    auto at = sessions_.find(id);
    return at == sessions_.end() ? nullptr : at->second;
}

bool SessionTable::erase(const std::string& id) {
    auto at = sessions_.find(id);
    if (at == sessions_.end()) return false;
    at->second->close();
    sessions_.erase(at);
    return true;
}

std::size_t SessionTable::signal_all(int number) const {
    std::size_t running = 0;
    for (const auto& [id, session] : sessions_) {
        if (session->signal_group(number)) ++running;
    }
    return running;
}

}  // namespace opensandbox::agent
