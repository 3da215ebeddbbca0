#include "agent/process/spawn.hpp"

#include "agent/process/accounts.hpp"
#include "base/unique_fd.hpp"

#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

namespace opensandbox::agent {
namespace {

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::size_t kStackSize = std::size_t{32} * 1024;

enum class Step : int {
    none,
    namespaces,
    descriptors,
    terminal,
    directory,
    bounds,
    groups,
    group,
    user,
    walls,
    execute
};

const char* describe(Step step) {
    switch (step) {
        case Step::namespaces: return "enter the namespaces";
        case Step::descriptors: return "pass descriptors";
        case Step::terminal: return "take the terminal";
        case Step::directory: return "chdir ";
        case Step::bounds: return "bound the capabilities";
        case Step::groups: return "setgroups";
        case Step::group: return "setgid";
        case Step::user: return "setuid";
        case Step::walls: return "confine";
        case Step::execute: return "exec ";
        case Step::none: break;
    }
    return "start";
}

/// One path to try with its arguments.
struct Attempt {
    const char* path;
    char* const* argv;
};

/// All that the child needs, laid out before it exists: it shares our memory and must not allocate.
struct ChildPlan {
    const Attempt* attempts = nullptr;
    std::size_t attempt_count = 0;
    char* const* environment = nullptr;
    const char* directory = nullptr;
    const Credentials* credentials = nullptr;
    int* descriptors = nullptr;  ///< what becomes 0, 1, 2…; overwritten by the child
    int descriptor_count = 0;
    bool controlling_terminal = false;
    const Enclosure* enclosure = nullptr;
    char* inner_stack = nullptr;  ///< for the process behind the one that enters the namespaces
    // Written by the child, read by the parent after it resumed.
    pid_t inner = -1;
    Step failed = Step::none;
    int error = 0;
};

bool keeps_searching(int error) {
    return error == ENOENT || error == ENOTDIR || error == EACCES;
}

/// Puts the descriptors in place without one overwriting another that is still needed. By a raw
/// call: a sanitizer takes them for those of the process whose memory is borrowed.
bool place_descriptors(int* wanted, int count) {
    for (int i = 0; i < count; ++i) {
        wanted[i] = ::fcntl(wanted[i], F_DUPFD_CLOEXEC, count);
        if (wanted[i] < 0) return false;
    }
    for (int i = 0; i < count; ++i) {
        if (::syscall(SYS_dup3, wanted[i], i, 0) < 0) return false;
    }
    return true;
}

/// Raw calls: the C library's own would signal the agent's other threads.
Step take_credentials(const Credentials& credentials) {
    if (::syscall(SYS_setgroups, credentials.groups.size(), credentials.groups.data()) != 0) {
        return Step::groups;
    }
    if (::syscall(SYS_setresgid, credentials.gid, credentials.gid, credentials.gid) != 0) {
        return Step::group;
    }
    if (::syscall(SYS_setresuid, credentials.uid, credentials.uid, credentials.uid) != 0) {
        return Step::user;
    }
    return Step::none;
}

__attribute__((no_sanitize("address", "undefined", "thread"))) int run_child(void* argument) {
    auto& plan = *static_cast<ChildPlan*>(argument);
    auto fail = [&](Step step) {
        plan.failed = step;
        plan.error = errno;
        ::syscall(SYS_exit_group, 127);
        return 127;
    };
    if (plan.controlling_terminal) {
        ::setsid();
    } else {
        ::setpgid(0, 0);
    }
    if (!place_descriptors(plan.descriptors, plan.descriptor_count)) return fail(Step::descriptors);
    if (plan.controlling_terminal && ::ioctl(0, TIOCSCTTY, 0) != 0) return fail(Step::terminal);
    // Whatever anyone forgot to mark: nothing but these may reach the program.
    ::syscall(SYS_close_range, static_cast<unsigned>(plan.descriptor_count), ~0U,
              CLOSE_RANGE_CLOEXEC);
    // With the caller's rights first: another user may not be able to search the path.
    if (plan.directory && ::chdir(plan.directory) != 0) return fail(Step::directory);
    if (plan.enclosure && !bound_capabilities(*plan.enclosure)) return fail(Step::bounds);
    if (plan.credentials) {
        Step step = take_credentials(*plan.credentials);
        if (step != Step::none) return fail(step);
    }
    if (plan.enclosure && !put_up_walls(*plan.enclosure)) return fail(Step::walls);
    struct sigaction normal{};
    normal.sa_handler = SIG_DFL;
    ::sigaction(SIGPIPE, &normal, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    int denied = 0;
    for (std::size_t i = 0; i < plan.attempt_count; ++i) {
        ::execve(plan.attempts[i].path, plan.attempts[i].argv, plan.environment);
        if (!keeps_searching(errno)) return fail(Step::execute);
        if (errno == EACCES) denied = EACCES;
    }
    errno = denied != 0 ? denied : ENOENT;
    return fail(Step::execute);
}

#if __has_feature(thread_sanitizer)
/// The C library's; the sanitizer's own takes every child for one that has memory of its own.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __clone(int (*)(void*), void*, int, void*, ...);
constexpr auto kCloneProcess = __clone;
#else
constexpr auto kCloneProcess = ::clone;
#endif

/// The child borrows our memory until it executes; only its stack is its own.
__attribute__((no_sanitize("address", "undefined", "thread"))) pid_t
borrow_memory(int (*child)(void*), char* stack, int flags, ChildPlan& plan) {
    return kCloneProcess(child, stack, CLONE_VM | CLONE_VFORK | SIGCHLD | flags, &plan);
}

/// A process is born into a pid namespace, it cannot move there: one enters, its child, which has
/// our parent, is the one that stays.
__attribute__((no_sanitize("address", "undefined", "thread"))) int run_entering(void* argument) {
    auto& plan = *static_cast<ChildPlan*>(argument);
    for (int space : plan.enclosure->namespaces) {
        if (::setns(space, 0) == 0) continue;
        plan.failed = Step::namespaces;
        plan.error = errno;
        ::syscall(SYS_exit_group, 127);
    }
    plan.inner = borrow_memory(run_child, plan.inner_stack, CLONE_PARENT, plan);
    if (plan.inner < 0) {
        plan.failed = Step::namespaces;
        plan.error = errno;
    }
    ::syscall(SYS_exit_group, 0);
    return 0;
}

void collect(pid_t pid) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
    std::vector<char*> out;
    out.reserve(strings.size() + 1);
    for (const std::string& text : strings)
        out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

/// /dev/null, or where there is none a pipe without another end.
UniqueFd open_null(int mode) {
    UniqueFd null(::open("/dev/null", mode | O_CLOEXEC));
    if (null) return null;
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
    UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    return mode == O_RDONLY ? std::move(read_end) : std::move(write_end);
}

Error failure(const SpawnRequest& request, const ChildPlan& plan) {
    std::string what = describe(plan.failed);
    if (plan.failed == Step::directory) what += request.directory;
    if (plan.failed == Step::execute) {
        for (std::size_t i = 0; i < request.programs.size(); ++i) {
            what += (i == 0 ? "" : " or ") + request.programs[i].argv.front();
        }
    }
    return Error::from_errno(plan.error, what);
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest& request) {
    std::vector<std::vector<char*>> argument_lists;
    std::vector<Attempt> attempts;
    argument_lists.reserve(request.programs.size());
    for (const Program& program : request.programs) {
        argument_lists.push_back(pointers(program.argv));
        for (const std::string& path : program.paths) {
            attempts.push_back({path.c_str(), argument_lists.back().data()});
        }
    }
    std::vector<char*> environment = pointers(request.environment);

    ChildPlan plan;
    plan.attempts = attempts.data();
    plan.attempt_count = attempts.size();
    plan.environment = environment.data();
    plan.directory = request.directory.empty() ? nullptr : request.directory.c_str();
    plan.credentials = request.credentials ? &*request.credentials : nullptr;
    UniqueFd null_input;
    UniqueFd null_output;
    if (request.standard_input < 0) null_input = open_null(O_RDONLY);
    if (request.standard_output < 0 || request.standard_error < 0)
        null_output = open_null(O_WRONLY);
    auto choose = [](int wanted, const UniqueFd& null) { return wanted < 0 ? null.get() : wanted; };
    std::vector<int> descriptors{choose(request.standard_input, null_input),
                                 choose(request.standard_output, null_output),
                                 choose(request.standard_error, null_output)};
    descriptors.insert(descriptors.end(), request.passed.begin(), request.passed.end());
    plan.descriptors = descriptors.data();
    plan.descriptor_count = static_cast<int>(descriptors.size());
    plan.controlling_terminal = request.controlling_terminal;

    plan.enclosure = request.enclosure;

    bool entering = plan.enclosure && !plan.enclosure->namespaces.empty();
    auto stack = std::make_unique_for_overwrite<char[]>(kStackSize);
    std::unique_ptr<char[]> inner_stack;
    if (entering) {
        inner_stack = std::make_unique_for_overwrite<char[]>(kStackSize);
        plan.inner_stack = inner_stack.get() + kStackSize;
    }
    pid_t pid =
        borrow_memory(entering ? run_entering : run_child, stack.get() + kStackSize, 0, plan);
    if (pid < 0) return Error::from_errno(errno, "start a process");
    if (entering) {
        collect(pid);
        pid = plan.inner;
    }
    if (plan.failed == Step::none) return pid;
    if (pid > 0) collect(pid);
    return failure(request, plan);
}

std::vector<std::string> search_path(std::string_view name, std::optional<std::string_view> path) {
    std::vector<std::string> out;
    std::string_view rest = path.value_or(kDefaultPath);
    while (true) {
        std::size_t colon = rest.find(':');
        std::string_view directory = rest.substr(0, colon);
        if (directory.starts_with('/')) {
            out.push_back(std::string(directory) + (directory.ends_with('/') ? "" : "/") +
                          std::string(name));
        }
        if (colon == std::string_view::npos) return out;
        rest.remove_prefix(colon + 1);
    }
}

Program program_of(std::vector<std::string> argv, std::optional<std::string_view> path) {
    std::vector<std::string> paths;
    if (argv.front().find('/') != std::string::npos) {
        paths.push_back(argv.front());
    } else {
        paths = search_path(argv.front(), path);
    }
    return {std::move(argv), std::move(paths)};
}

std::vector<Program> shell_programs(const std::string& command,
                                    std::optional<std::string_view> path) {
    std::vector<Program> out;
    out.emplace_back(std::vector<std::string>{"bash", "-c", command}, search_path("bash", path));
    out.emplace_back(std::vector<std::string>{"sh", "-c", command}, search_path("sh", path));
    return out;
}

std::optional<Credentials> credentials_for(uid_t uid, std::optional<gid_t> gid) {
    Accounts accounts = Accounts::load();
    gid_t primary = gid ? *gid : accounts.primary_group(uid).value_or(uid);
    if (uid == ::geteuid() && primary == ::getegid()) return std::nullopt;
    return Credentials(uid, primary, accounts.groups_of(uid, primary));
}

}  // namespace opensandbox::agent
