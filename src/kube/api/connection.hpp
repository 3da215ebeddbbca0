#pragma once

#include "http/url.hpp"
#include "kube/access/credentials.hpp"
#include "kube/api/back_off.hpp"
#include "kube/api/circuit.hpp"
#include "kube/api/failure.hpp"
#include "kube/api/rate_limit.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace opensandbox::kube {

/// How the API server is spoken to.
struct ConnectionSettings {
    Rate reads;
    Rate writes;
    std::chrono::milliseconds read_limit{5'000};  ///< a whole call, with what is repeated of it
    std::chrono::milliseconds write_limit{10'000};
    std::string user_agent = "opensandbox";
};

/// One call of the API. `target` is raw, with its query.
struct Call {
    std::string method = "GET";
    std::string target;
    std::string content;
    std::string content_type = "application/json";
    Repeating repeating = Repeating::harmless;

    [[nodiscard]] bool reads() const { return method == "GET"; }
};

/// Calls of one API server, over connections that are kept, with our credentials: limited in rate
/// and time, repeated after a pause where that is harmless, and failing at once while the server
/// does not answer. For one event loop.
class Connection {
  public:
    Connection(asio::any_io_executor executor, Cluster cluster, ConnectionSettings settings = {});
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// The body of an answer below 300, at most 64 MiB. The errors of failure_of(); `unavailable`
    /// when there is no answer, `timeout` when it did not come in time.
    Awaitable<Result<std::string>> call(Call call);
    /// An answer below 300 whose body is still to be read: a stream of events, without a limit of
    /// time. Sent once.
    Awaitable<Result<std::unique_ptr<http::ClientResponse>>> open(Call call);

    [[nodiscard]] const Cluster& cluster() const { return cluster_; }
    [[nodiscard]] asio::any_io_executor executor() const { return executor_; }
    /// Whether calls fail at once.
    [[nodiscard]] bool is_cut_off() const { return circuit_.open(); }

  private:
    struct Limit;
    struct Answer;
    Awaitable<Answer> try_once(const Call* call, Limit* limit);
    Awaitable<Result<std::unique_ptr<http::ClientResponse>>> send(const Call* call, Limit* limit);
    Awaitable<Result<std::string>> call_in_time(const Call* call, Limit* limit);

    asio::any_io_executor executor_;
    Cluster cluster_;
    ConnectionSettings settings_;
    Result<http::Url> url_;
    Credentials credentials_;
    http::Client client_;
    RateLimit reads_;
    RateLimit writes_;
    Circuit circuit_;
    unsigned seed_;
};

}  // namespace opensandbox::kube
