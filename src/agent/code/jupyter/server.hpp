#pragma once

#include "base/error.hpp"
#include "http/client.hpp"
#include "http/url.hpp"
#include "http/websocket_connection.hpp"
#include "json/document.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::agent::jupyter {

/// How long things may take.
struct Limits {
    /// A server that does not listen yet is waited for so long after the agent began.
    std::chrono::milliseconds startup{60'000};
    std::chrono::milliseconds request{30'000};  ///< for one answer
    std::chrono::milliseconds start{60'000};    ///< for the answer to the start of a kernel
    std::chrono::milliseconds specs{30'000};    ///< how long the list of kernel specs is believed
    /// Silence after one of the two messages that end a run, before the other counts as lost.
    std::chrono::milliseconds lost_reply{10'000};
    /// Silence in a run before the server is asked whether its kernel still works on it.
    std::chrono::milliseconds check{10'000};
};

/// A kernel that can be started.
struct KernelSpec {
    std::string name;
    std::string language;  ///< lower case
};

/// The specs of a GET /api/kernelspecs reply; those without a language are left out. Pure.
std::vector<KernelSpec> read_kernel_specs(const json::value& reply);

/// The spec for a language: the one of the same name, else the first by name; `python3` only when
/// there is no other for python (execd contract 5.2). Null when there is none. Pure.
const KernelSpec* choose_kernel(const std::vector<KernelSpec>& specs, std::string_view language);

/// A session of the server and its kernel.
struct Session {
    std::string id;
    std::string path;
    std::string kernel_id;
    std::string kernel_name;
};

/// Reads one; `bad_gateway` when ids are missing. Pure.
Result<Session> read_session(const json::value& reply);

/// The HTTP interface of a Jupyter server (execd contract 5.2, 5.4). Calls fail with `unavailable`
/// at once when it does not listen, unless it never answered yet and may still be starting; with
/// `timeout`; and with `bad_gateway` naming its status when it refuses.
class Server {
  public:
    /// `url` without a slash at the end of its path.
    Server(asio::any_io_executor executor, http::Client& client, http::Url url, std::string token,
           Limits limits);

    [[nodiscard]] const Limits& limits() const { return limits_; }
    [[nodiscard]] asio::any_io_executor executor() const { return executor_; }

    /// From memory when asked shortly before, unless `fresh`.
    Awaitable<Result<std::vector<KernelSpec>>> kernel_specs(bool fresh);
    Awaitable<Result<Session>> create_session(std::string path, std::string kernel_name);
    /// Never waits for a server that is starting: it has none yet.
    Awaitable<Result<std::vector<Session>>> sessions();
    /// Ends its kernel; well when it is gone already.
    Awaitable<Status> delete_session(std::string id);
    Awaitable<Status> interrupt(std::string kernel_id);
    /// "idle", "busy", "starting", "dead"…; `not_found` when there is no such kernel.
    Awaitable<Result<std::string>> kernel_state(std::string kernel_id);
    /// The kernel's messages. `session_id` lets the server give what it kept while nobody listened.
    Awaitable<Result<std::unique_ptr<http::WebSocketConnection>>> open_channels(
        std::string kernel_id, std::string session_id);

  private:
    struct Reply {
        int status = 0;
        std::string body;
    };
    Awaitable<Result<Reply>> request(std::string method, std::string path, std::string body,
                                     std::chrono::milliseconds limit);
    Awaitable<Result<Reply>> request_once(std::string method, std::string path, std::string body,
                                          std::chrono::milliseconds limit);
    [[nodiscard]] http::Fields fields() const;
    [[nodiscard]] bool starting() const;

    asio::any_io_executor executor_;
    http::Client& client_;
    http::Url url_;
    std::string token_;
    Limits limits_;
    std::chrono::steady_clock::time_point created_;
    bool answered_ = false;
    std::vector<KernelSpec> specs_;
    std::chrono::steady_clock::time_point specs_read_{};
};

}  // namespace opensandbox::agent::jupyter
