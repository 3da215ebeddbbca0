#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace opensandbox::sdk {

/// What kind of failure this is, whatever part of the system it came from.
enum class ErrorCode : std::uint8_t {
    invalid_argument,    ///< a value breaks a rule; the message names it
    unauthenticated,     ///< no API key, or a wrong one
    permission_denied,   ///< known caller, not allowed
    not_found,           ///< no such sandbox, command, file or image
    conflict,            ///< it exists but its state forbids the request
    too_large,           ///< a size limit was passed
    resource_exhausted,  ///< a quota, pool or disk is used up
    unsupported,         ///< this server cannot do it
    unavailable,         ///< the server cannot be reached
    bad_gateway,         ///< the connection broke in mid-exchange
    timeout,             ///< a deadline passed
    cancelled,           ///< given up on request
    protocol,            ///< the answer does not follow its format
    io,                  ///< a local operating system call failed
    internal,            ///< the server's or this library's fault
};

/// Lower-case name of the code ("not_found").
std::string_view to_string(ErrorCode code);

/// One failure, with all that the server said about it.
class Error {
  public:
    Error() = default;
    Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
    Error(ErrorCode code, int status, std::string wire_code, std::string message,
          std::string request_id)
        : code_(code),
          status_(status),
          wire_code_(std::move(wire_code)),
          message_(std::move(message)),
          request_id_(std::move(request_id)) {}

    [[nodiscard]] ErrorCode code() const { return code_; }
    /// HTTP status of the answer; 0 when there was none.
    [[nodiscard]] int status() const { return status_; }
    /// The server's identifier, such as `NATIVE::SANDBOX_NOT_FOUND`; may be empty.
    [[nodiscard]] const std::string& wire_code() const { return wire_code_; }
    /// A sentence for people.
    [[nodiscard]] const std::string& message() const { return message_; }
    /// Finds the request in the server's logs; may be empty.
    [[nodiscard]] const std::string& request_id() const { return request_id_; }

    /// When the server wants to be asked again (`Retry-After`), from the answer on.
    [[nodiscard]] std::optional<std::chrono::milliseconds> retry_after() const {
        return retry_after_;
    }

    /// The same error with `context: ` before its message.
    [[nodiscard]] Error within(std::string_view context) const;
    [[nodiscard]] Error with_retry_after(std::optional<std::chrono::milliseconds> wait) const;

  private:
    ErrorCode code_ = ErrorCode::internal;
    int status_ = 0;
    std::string wire_code_;
    std::string message_;
    std::string request_id_;
    std::optional<std::chrono::milliseconds> retry_after_;
};

/// What Result::value() throws when there is no value.
class Failure : public std::runtime_error {
  public:
    explicit Failure(Error error) : std::runtime_error(error.message()), error_(std::move(error)) {}
    [[nodiscard]] const Error& error() const { return error_; }

  private:
    Error error_;
};

/// A value or an Error. Nothing in this library throws but value(), when called on an error.
template <class T>
class [[nodiscard]] Result {
  public:
    // NOLINTNEXTLINE(google-explicit-constructor): `return value;` and `return Error(…);`
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool has_value() const { return state_.index() == 0; }
    [[nodiscard]] bool has_error() const { return !has_value(); }
    explicit operator bool() const { return has_value(); }

    /// The value; throws Failure when there is none.
    T& value() & {
        if (!has_value()) throw Failure(error());
        return std::get<0>(state_);
    }
    const T& value() const& {
        if (!has_value()) throw Failure(error());
        return std::get<0>(state_);
    }
    T value() && {
        if (!has_value()) throw Failure(error());
        return std::move(std::get<0>(state_));
    }

    /// Only when has_value().
    T& operator*() & { return *std::get_if<0>(&state_); }
    const T& operator*() const& { return *std::get_if<0>(&state_); }
    T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
    T* operator->() { return std::get_if<0>(&state_); }
    const T* operator->() const { return std::get_if<0>(&state_); }

    /// Only when has_error().
    [[nodiscard]] const Error& error() const { return *std::get_if<1>(&state_); }

  private:
    std::variant<T, Error> state_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    // NOLINTNEXTLINE(google-explicit-constructor)
    Result(Error error) : error_(std::move(error)) {}

    [[nodiscard]] bool has_value() const { return !error_; }
    [[nodiscard]] bool has_error() const { return error_.has_value(); }
    explicit operator bool() const { return has_value(); }
    /// Throws Failure on an error.
    void value() const {
        if (error_) throw Failure(*error_);
    }
    [[nodiscard]] const Error& error() const { return *error_; }

  private:
    std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace opensandbox::sdk
