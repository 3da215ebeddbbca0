#pragma once

#include "agent/api/agent.hpp"
#include "http/fields.hpp"

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace opensandbox::agent::testing {

/// How much more memory than usual a process may take: the sanitizer keeps what was freed.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr long kAllocatorFactor = 40;
#else
inline constexpr long kAllocatorFactor = 1;
#endif

/// A directory that goes away with the test.
class Scratch {
  public:
    Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch();
    [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
    [[nodiscard]] const std::string& path() const { return path_; }
    /// Writes a file and returns its path.
    std::string file(const std::string& name, const std::string& content) const;
    [[nodiscard]] std::string read(const std::string& name) const;

  private:
    std::string path_;
};

struct Reply {
    int status = 0;
    http::Fields fields;
    std::string body;
};

/// One event of a stream.
struct StreamEvent {
    std::string type;
    std::string text;
    std::string name;   ///< of an error
    std::string value;  ///< of an error
    std::string trace;  ///< its first line
};
std::vector<StreamEvent> parse_events(const std::string& body);
/// All texts of one type.
std::string joined(const std::vector<StreamEvent>& events, const std::string& type);

/// A TCP connection that speaks for itself.
class RawConnection {
  public:
    /// `receive_buffer` in bytes, 0 for what the kernel thinks fit.
    explicit RawConnection(std::uint16_t port, int receive_buffer = 0);
    RawConnection(const RawConnection&) = delete;
    RawConnection& operator=(const RawConnection&) = delete;
    ~RawConnection();
    void send(const std::string& bytes) const;
    /// Up to `size` bytes; empty at the end. A minute of silence fails the test.
    std::string receive(std::size_t size) const;
    /// Reads until `mark` was seen (or the end) and returns all.
    std::string receive_until(const std::string& mark) const;

  private:
    int fd_;
};

/// An agent in a forked process, as a native slot has it: no exec, an adopted listener on loopback.
/// Killed and reaped at the end.
class AgentProcess {
  public:
    explicit AgentProcess(AgentOptions options = {});
    AgentProcess(const AgentProcess&) = delete;
    AgentProcess& operator=(const AgentProcess&) = delete;
    ~AgentProcess();

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] pid_t pid() const { return pid_; }
    /// What on_ready reported: empty for success.
    [[nodiscard]] const std::string& ready() const { return ready_; }

    Reply call(const std::string& method, const std::string& target, const std::string& body = {},
               http::Fields fields = {}) const;
    /// POST /command to its end.
    std::vector<StreamEvent> command(const std::string& json) const;
    void signal(int number) const;
    /// Exit code, 128 and the signal; -1 when it did not end within ten seconds.
    int wait();
    /// Private resident memory, KiB.
    [[nodiscard]] long anonymous_memory() const;
    /// Children that ended and were not collected.
    [[nodiscard]] int zombies() const;

  private:
    pid_t pid_ = -1;
    std::uint16_t port_ = 0;
    std::string ready_;
    bool ended_ = false;
};

/// Waits until `condition` holds, at most ten seconds.
template <class Condition>
bool eventually(Condition condition) {
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > limit) return false;
        ::usleep(5000);
    }
    return true;
}

/// The JSON text of a command request, with members appended.
std::string shell_request(const std::string& command, const std::string& more = {});

}  // namespace opensandbox::agent::testing
