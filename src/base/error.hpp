#pragma once

#include <boost/system/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox {

/// What kind of failure this is. `http/status.hpp` maps each to an HTTP status, nothing else does.
enum class ErrorCode : std::uint8_t {
    invalid_argument,    ///< a value breaks a rule; the message names the field and the rule
    unauthenticated,     ///< no or wrong credentials
    permission_denied,   ///< known caller, not allowed
    not_found,           ///< the named thing does not exist
    conflict,            ///< the thing exists but its state forbids the request
    too_large,           ///< a size limit was passed
    resource_exhausted,  ///< a quota, pool or disk is used up
    unsupported,         ///< this runtime or build cannot do it
    unavailable,         ///< a component is not reachable now
    bad_gateway,         ///< a backend refused, dropped or garbled the exchange
    timeout,             ///< a deadline passed
    cancelled,           ///< the caller went away
    protocol,            ///< bytes received do not follow their format
    io,                  ///< an operating system call failed
    internal,            ///< a bug of ours
};

/// The one error type. Carries a code, the contract's wire identifier where there is one, and a
/// sentence for people.
class Error {
  public:
    Error() = default;
    Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
    /// `wire` is the contract's identifier, such as `NATIVE::SANDBOX_NOT_FOUND`.
    Error(ErrorCode code, std::string wire, std::string message)
        : code_(code), wire_(std::move(wire)), message_(std::move(message)) {}

    /// From an errno value; `what` says what was tried ("open /x"). ENOENT becomes not_found,
    /// EACCES and EPERM permission_denied, EEXIST conflict, ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM
    /// and EAGAIN resource_exhausted, ETIMEDOUT timeout, all else io.
    static Error from_errno(int number, std::string_view what);

    [[nodiscard]] ErrorCode code() const { return code_; }
    /// Empty unless the contract names this failure.
    [[nodiscard]] const std::string& wire() const { return wire_; }
    [[nodiscard]] const std::string& message() const { return message_; }

    /// The same error with `context: ` before its message.
    [[nodiscard]] Error within(std::string_view context) const;
    /// The same error under a wire identifier of the contract.
    [[nodiscard]] Error as(std::string wire) const;

  private:
    ErrorCode code_ = ErrorCode::internal;
    std::string wire_;
    std::string message_;
};

/// A value breaks a rule; the message names the field and the rule.
inline Error invalid(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message)};
}

/// Lower-case name of the code, for logs and metrics.
std::string_view to_string(ErrorCode code);

/// A value or an Error. Exceptions do not cross module boundaries.
template <class T>
using Result = boost::system::result<T, Error>;

using Status = Result<void>;

/// Lets boost::system::result::value() throw something printable in tests.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location&);

}  // namespace opensandbox
