#include "unit/runtime/spawner_fixture.hpp"

#include "base/identifier.hpp"
#include "base/remove_tree.hpp"
#include "net/task.hpp"
#include "runtime/native/ground/confinement/cgroup.hpp"
#include "runtime/native/ground/kernel/kernel.hpp"
#include "runtime/native/host/host.hpp"
#include "runtime/native/records/journal.hpp"
#include "runtime/native/records/names.hpp"
#include "runtime/native/spawner/spawner.hpp"

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <thread>
#include <unistd.h>

namespace opensandbox::runtime::test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

std::filesystem::path make_state() {
    char name[] = "/var/tmp/osb-test-XXXXXX";
    return ::mkdtemp(name);
}

void add_names(const fs::path& directory, std::set<std::string>& into) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error)) {
        into.insert(entry.path().string());
    }
}

}  // namespace

SpawnerFixture::SpawnerFixture(std::uint32_t pool_size, native::WarmOptions warm)
    : state_(make_state()),
      range_("10.215." + std::to_string(::getpid() % 256) + ".0/24"),
      pool_size_(pool_size),
      warm_(std::move(warm)) {
    auto store = image::Store::open(state_ / "images");
    REQUIRE(store.has_value());
    images_ = std::move(*store);
    fs::create_directory(allowed());
    start_spawner();
    connect();
}

SpawnerFixture::~SpawnerFixture() {
    for (const Observed& item : list())
        (void)destroy(item.id);
    run<int>([this]() -> Awaitable<int> {
        co_await runtime_->stop();
        co_return 0;
    });
    runtime_.reset();
    // What still runs there uses the images.
    blocking_.join();
    if (spawner_ > 0) {
        ::kill(spawner_, SIGTERM);
        ::waitpid(spawner_, nullptr, 0);
    }
    (void)remove_tree(state_);
}

void SpawnerFixture::start_spawner() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    spawner_ = ::fork();
    REQUIRE(spawner_ >= 0);
    if (spawner_ == 0) {
        // The test framework's handlers are not for a process forked from it.
        for (const int number : {SIGTERM, SIGINT, SIGSEGV, SIGABRT})
            ::signal(number, SIG_DFL);
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        ::close(ends[0]);
        std::vector<std::string> words{
            "spawner", "--state-directory",       state_.string(), "--address-range", range_,
            "--pool",  std::to_string(pool_size_)};
        std::vector<char*> argv;
        for (std::string& word : words)
            argv.push_back(word.data());
        ::_exit(native::spawner_main(static_cast<int>(argv.size()), argv.data()));
    }
    ::close(ends[1]);
    ::close(ends[0]);
    for (int round = 0; round < 500 && !fs::exists(state_ / "spawner.sock"); ++round) {
        std::this_thread::sleep_for(20ms);
    }
}

void SpawnerFixture::kill_spawner() {
    ::kill(spawner_, SIGKILL);
    ::waitpid(spawner_, nullptr, 0);
    spawner_ = 0;
}

void SpawnerFixture::connect() {
    native::NativeOptions options;
    options.state_directory = state_;
    options.address_range = range_;
    options.pool = {pool_size_, pool_size_, 60};
    options.warm = warm_;
    options.allowed_host_paths = {allowed().string()};
    // A spawner that is missing must fail the test, not be started behind its back.
    options.executable = "/bin/false";
    runtime_ = native::make_native_runtime(loop_.get_executor(), blocking_, *images_, options);
    runtime_->on_exit([this](const std::string& id, const Exit& exit) { exits_[id] = exit; });
    Status status;
    for (int round = 0; round < 100; ++round) {
        status =
            run<Status>([this]() -> Awaitable<Status> { co_return co_await runtime_->start(); });
        if (status) return;
        std::this_thread::sleep_for(50ms);
    }
    FAIL(status.error().message());
}

template <class T>
T SpawnerFixture::run(std::function<Awaitable<T>()> body) {
    // Shared, since a coroutine that comes too late still writes it.
    auto result = std::make_shared<std::optional<T>>();
    auto task = [](std::function<Awaitable<T>()> work,
                   std::shared_ptr<std::optional<T>> into) -> Awaitable<void> {
        auto value = co_await work();
        into->emplace(std::move(value));
    };
    net::spawn(loop_.get_executor(), task(std::move(body), result), "test");
    const auto end = std::chrono::steady_clock::now() + 60s;
    loop_.restart();
    while (!*result && std::chrono::steady_clock::now() < end)
        loop_.run_one_for(100ms);
    if (!*result) FAIL("no answer within a minute");
    return std::move(**result);
}

Result<AgentAddress> SpawnerFixture::create(const SandboxSpec& spec) {
    auto made = run<Result<Endpoints>>(
        [&]() -> Awaitable<Result<Endpoints>> { co_return co_await runtime_->create(spec); });
    if (!made) return made.error();
    return made->agent;
}

Status SpawnerFixture::destroy(const std::string& id) {
    return run<Status>([&]() -> Awaitable<Status> { co_return co_await runtime_->destroy(id); });
}

std::vector<Observed> SpawnerFixture::list() {
    auto all = run<Result<std::vector<Observed>>>(
        [&]() -> Awaitable<Result<std::vector<Observed>>> { co_return co_await runtime_->list(); });
    return all ? std::move(*all) : std::vector<Observed>();
}

Status SpawnerFixture::pause(const std::string& id) {
    return run<Status>([&]() -> Awaitable<Status> { co_return co_await runtime_->pause(id); });
}

Status SpawnerFixture::resume(const std::string& id) {
    return run<Status>([&]() -> Awaitable<Status> { co_return co_await runtime_->resume(id); });
}

Result<SnapshotReference> SpawnerFixture::snapshot(const std::string& id,
                                                   const std::string& snapshot_id) {
    return run<Result<SnapshotReference>>([&]() -> Awaitable<Result<SnapshotReference>> {
        co_return co_await runtime_->snapshot(id, snapshot_id);
    });
}

Result<SnapshotReference> SpawnerFixture::snapshot(const std::string& id,
                                                   const std::string& snapshot_id,
                                                   const std::function<bool()>& meanwhile) {
    using Taken = Result<SnapshotReference>;
    return run<Taken>([&]() -> Awaitable<Taken> {
        auto result = std::make_shared<std::optional<Taken>>();
        auto task = [](Runtime& runtime, std::string sandbox, std::string snapshot,
                       std::shared_ptr<std::optional<Taken>> into) -> Awaitable<void> {
            auto taken = co_await runtime.snapshot(sandbox, snapshot);
            into->emplace(std::move(taken));
        };
        net::spawn(loop_.get_executor(), task(*runtime_, id, snapshot_id, result), "snapshot");
        while (!meanwhile())
            co_await net::sleep_for(1ms);
        while (!*result)
            co_await net::sleep_for(5ms);
        co_return std::move(**result);
    });
}

Result<SnapshotReference> SpawnerFixture::fork(const std::string& id, const std::string& fork_id) {
    using Kept = Result<SnapshotReference>;
    return run<Kept>([&]() -> Awaitable<Kept> { co_return co_await runtime_->fork(id, fork_id); });
}

Result<SnapshotContent> SpawnerFixture::open_snapshot(const std::string& snapshot_id) {
    using Opened = Result<SnapshotContent>;
    return run<Opened>([&]() -> Awaitable<Opened> {
        SnapshotReference reference(snapshot_id, snapshot_id);
        co_return co_await runtime_->open_snapshot(reference);
    });
}

Status SpawnerFixture::remove_snapshot(const std::string& snapshot_id) {
    return run<Status>([&]() -> Awaitable<Status> {
        SnapshotReference reference(snapshot_id, snapshot_id);
        co_return co_await runtime_->remove_snapshot(reference);
    });
}

Result<std::string> SpawnerFixture::logs(const std::string& id, const LogQuery& query) {
    using Shown = Result<std::string>;
    return run<Shown>([&]() -> Awaitable<Shown> { co_return co_await runtime_->logs(id, query); });
}

Result<Inspection> SpawnerFixture::inspect(const std::string& id) {
    using Seen = Result<Inspection>;
    return run<Seen>([&]() -> Awaitable<Seen> { co_return co_await runtime_->inspect(id); });
}

std::set<std::string> SpawnerFixture::snapshots() {
    using Listed = Result<std::vector<SnapshotReference>>;
    auto all =
        run<Listed>([&]() -> Awaitable<Listed> { co_return co_await runtime_->list_snapshots(); });
    REQUIRE(all.has_value());
    std::set<std::string> ids;
    for (const SnapshotReference& item : *all)
        ids.insert(item.id);
    return ids;
}

std::set<std::string> SpawnerFixture::snapshot_files() const {
    std::set<std::string> found;
    const fs::path root = state_ / "snapshots";
    for (const fs::path& path : {root, root / "layers", root / "staging", root / "gone"})
        add_names(path, found);
    for (const char* fixed : {"layers", "staging", "gone"})
        found.erase((root / fixed).string());
    return found;
}

fs::path SpawnerFixture::slot_of(const std::string& id) const {
    auto entry =
        native::parse_entry(native::read_file_or_empty(state_ / "spawner" / "journal" / id));
    REQUIRE(entry.has_value());
    return state_ / "sandboxes" / native::slot_name(entry->slot);
}

Exit SpawnerFixture::wait_exit(const std::string& id) {
    loop_.restart();
    for (int round = 0; round < 300 && !exits_.contains(id); ++round)
        loop_.run_one_for(100ms);
    REQUIRE(exits_.contains(id));
    return exits_[id];
}

void SpawnerFixture::wait_ready(std::uint64_t count) {
    loop_.restart();
    for (int round = 0; round < 300 && runtime_->figures().slots_ready != count; ++round) {
        loop_.run_one_for(100ms);
    }
    REQUIRE(runtime_->figures().slots_ready == count);
}

bool SpawnerFixture::wait_figures(const std::function<bool(const Figures&)>& wanted) {
    loop_.restart();
    for (int round = 0; round < 300 && !wanted(runtime_->figures()); ++round)
        loop_.run_one_for(100ms);
    return wanted(runtime_->figures());
}

std::ostream& operator<<(std::ostream& out, const Census& census) {
    for (const auto& [kind, names] : {std::pair{"links", &census.links},
                                      {"cgroups", &census.cgroups},
                                      {"files", &census.files},
                                      {"processes", &census.processes}}) {
        out << kind << ":";
        for (const std::string& name : *names)
            out << " " << name;
        out << "\n";
    }
    return out;
}

namespace {

std::set<std::string> children_of(pid_t process) {
    const std::string pid = std::to_string(process);
    std::ifstream in("/proc/" + pid + "/task/" + pid + "/children");
    std::set<std::string> out;
    for (std::string child; in >> child;)
        out.insert(child);
    return out;
}

}  // namespace

/// Files of what was deleted go later, and so does the process that removes them.
void SpawnerFixture::await_rest() const {
    std::set<std::string> last;
    for (int round = 0, quiet = 0; round < 200 && quiet < 5; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        auto now = children_of(spawner_);
        const bool same = now == last && !fs::exists(state_ / "sandboxes" / "gone");
        quiet = same ? quiet + 1 : 0;
        last = std::move(now);
    }
}

Census SpawnerFixture::census() const {
    await_rest();
    Census found;
    auto routes = net::RouteSocket::open();
    REQUIRE(routes.has_value());
    const std::string tag = native::tag_of(state_);
    auto links = routes->list_links(native::link_prefix(tag));
    REQUIRE(links.has_value());
    for (const auto& link : *links)
        found.links.insert(link.name);
    const std::string mounts = native::read_file_or_empty("/proc/self/mounts");
    for (const auto& tree : native::find_hierarchies(mounts)) {
        const fs::path group = tree.base / native::cgroup_group(tag);
        if (fs::is_directory(group)) add_names(group, found.cgroups);
    }
    REQUIRE_FALSE(found.cgroups.empty());
    std::erase_if(found.cgroups, [](const std::string& path) { return !fs::is_directory(path); });
    add_names(state_ / "sandboxes", found.files);
    add_names(state_ / "spawner" / "journal", found.files);
    found.processes = children_of(spawner_);
    return found;
}

pid_t SpawnerFixture::agent_of(const std::string& id) const {
    auto entry =
        native::parse_entry(native::read_file_or_empty(state_ / "spawner" / "journal" / id));
    REQUIRE(entry.has_value());
    return entry->pid;
}

SandboxSpec SpawnerFixture::shell(const std::string& script) {
    SandboxSpec spec;
    spec.id = new_uuid();
    spec.image = "host";
    spec.entrypoint = {"/bin/sh", "-c", script};
    spec.agent_token = "token";
    return spec;
}

std::string http_get(const AgentAddress& agent, const std::string& path, const std::string& token) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(agent.port);
    ::inet_pton(AF_INET, agent.host.c_str(), &address.sin_addr);
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) return {};
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" +
                                "X-EXECD-ACCESS-TOKEN: " + token + "\r\n\r\n";
    if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
    std::string response;
    while (true) {
        pollfd item{fd.get(), POLLIN, 0};
        if (::poll(&item, 1, 5000) <= 0) return response;
        char buffer[4096];
        const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
        if (got <= 0) return response;
        response.append(buffer, static_cast<std::size_t>(got));
    }
}

}  // namespace opensandbox::runtime::test
