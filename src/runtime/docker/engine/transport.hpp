#pragma once

#include "base/error.hpp"
#include "http/client.hpp"
#include "json/document.hpp"
#include "runtime/docker/engine/address.hpp"
#include "runtime/docker/engine/engine.hpp"
#include "runtime/docker/engine/engine_call.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace opensandbox::runtime::docker {

/// A whole answer.
struct EngineReply {
    int status = 0;
    http::Fields fields;
    std::string body;
};

/// An answer that is read as it comes. Silence of the engine for longer than its limit is an error.
class EngineStream {
  public:
    EngineStream(asio::any_io_executor executor, std::string address, std::string shown,
                 std::unique_ptr<http::ClientResponse> response,
                 std::chrono::milliseconds silence_limit);

    [[nodiscard]] const http::ResponseHead& head() const { return response_->head(); }
    /// 0 at the end. `timeout`, `bad_gateway`, `cancelled`.
    Awaitable<Result<std::size_t>> read_some(std::span<char> into);
    /// A read in flight ends with `cancelled`.
    void close() { response_->abort(); }
    /// The same error with the engine's address before it.
    [[nodiscard]] Error named(const Error& error) const;

  private:
    asio::any_io_executor executor_;
    std::string address_;
    std::string shown_;
    std::unique_ptr<http::ClientResponse> response_;
    std::chrono::milliseconds silence_limit_;  ///< 0: none
};

/// Sends calls over HTTP, with limits on time and size, and turns failures into errors that name
/// the engine. No exception escapes, also when the caller is cancelled.
class Transport {
  public:
    Transport(asio::any_io_executor executor, EngineAddress address, EngineOptions options);

    /// The whole answer. Statuses of 300 and more that are not `accepted` are errors.
    Awaitable<Result<EngineReply>> call(EngineCall call);
    /// The same with the answer's JSON document.
    Awaitable<Result<json::value>> fetch(EngineCall call);
    /// The head of an answer whose body follows, on a connection of its own. The engine may take
    /// call_timeout for it, counted anew with every piece of a request body.
    Awaitable<Result<std::unique_ptr<EngineStream>>> open(EngineCall call,
                                                          std::chrono::milliseconds silence_limit);
    /// Asks for the version anew.
    Awaitable<Result<EngineVersion>> negotiate();
    /// The version that calls use, asked for when it is not known.
    Awaitable<Result<ApiVersion>> api_version();

    [[nodiscard]] const EngineAddress& address() const { return address_; }
    [[nodiscard]] const EngineOptions& options() const { return options_; }
    [[nodiscard]] Error named(const Error& error) const;

  private:
    Awaitable<Result<EngineReply>> exchange(EngineCall& call);
    Awaitable<Result<std::unique_ptr<EngineStream>>> begin(EngineCall& call,
                                                           std::chrono::milliseconds silence);
    http::ClientRequest request_of(EngineCall& call) const;
    Error judge(const EngineCall& call, const Error& error);
    [[nodiscard]] Status check(const EngineCall& call, int status, std::string_view body) const;

    asio::any_io_executor executor_;
    EngineAddress address_;
    EngineOptions options_;
    http::Origin origin_;
    http::Client calls_;
    http::Client streams_;
    std::optional<ApiVersion> version_;
};

}  // namespace opensandbox::runtime::docker
