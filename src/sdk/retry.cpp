#include "sdk/retry.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <string>

namespace opensandbox::sdk {

namespace {

constexpr int kTooManyRequests = 429;
constexpr int kBadGateway = 502;
constexpr int kServiceUnavailable = 503;
constexpr unsigned kMostAttempts = 100;
constexpr std::int64_t kLongestSeconds = 366LL * 24 * 3600;

Error wrong(std::string_view field, std::string_view rule) {
    return {ErrorCode::invalid_argument,
            "retry." + std::string(field) + " must be " + std::string(rule)};
}

bool is_unsent(const Error& error) {
    return error.status() == 0 && error.code() == ErrorCode::unavailable;
}

bool is_busy(const Error& error) {
    return error.status() == kTooManyRequests || error.status() == kServiceUnavailable;
}

bool is_worth_repeating(const RetryPolicy& policy, Repeatable repeatable, const Error& error) {
    if (is_unsent(error)) return policy.unreachable;
    if (repeatable == Repeatable::always) {
        return is_busy(error) || error.status() == kBadGateway ||
               (error.status() == 0 && error.code() == ErrorCode::bad_gateway);
    }
    return repeatable == Repeatable::if_invited && is_busy(error) && error.retry_after();
}

}  // namespace

std::optional<Error> refuse_policy(const RetryPolicy& policy) {
    if (policy.attempts < 1 || policy.attempts > kMostAttempts) {
        return wrong("attempts", "from 1 to 100");
    }
    if (policy.first_delay.count() < 1) return wrong("first_delay", "at least 1 ms");
    if (policy.longest_delay < policy.first_delay) {
        return wrong("longest_delay", "at least first_delay");
    }
    if (!(policy.jitter >= 0 && policy.jitter <= 1)) return wrong("jitter", "from 0 to 1");
    if (policy.longest_retry_after.count() < 0) return wrong("longest_retry_after", "0 or more");
    return std::nullopt;
}

std::chrono::milliseconds retry_delay(const RetryPolicy& policy, unsigned attempts, double chance) {
    auto delay = policy.first_delay;
    for (unsigned i = 1; i < attempts && delay < policy.longest_delay; ++i)
        delay *= 2;
    delay = std::min(delay, policy.longest_delay);
    const double kept = 1 - policy.jitter * std::clamp(chance, 0.0, 1.0);
    return std::chrono::milliseconds(std::llround(static_cast<double>(delay.count()) * kept));
}

std::optional<std::chrono::milliseconds> next_attempt(const RetryPolicy& policy,
                                                      Repeatable repeatable, unsigned attempts,
                                                      const Error& error, double chance) {
    if (attempts >= policy.attempts) return std::nullopt;
    if (!is_worth_repeating(policy, repeatable, error)) return std::nullopt;
    if (auto asked = error.retry_after()) {
        if (*asked > policy.longest_retry_after) return std::nullopt;
        return asked;
    }
    return retry_delay(policy, attempts, chance);
}

bool may_have_happened(const Error& error) {
    return !is_unsent(error) && !is_busy(error);
}

std::optional<std::chrono::milliseconds> parse_retry_after(std::string_view text,
                                                           std::chrono::sys_seconds now) {
    std::int64_t seconds = 0;
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (failed == std::errc() && end == text.data() + text.size()) {
        if (seconds < 0) return std::nullopt;
        return std::chrono::seconds(std::min(seconds, kLongestSeconds));
    }
    std::tm date{};
    const std::string whole(text);
    const char* rest = strptime(whole.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
    if (!rest || *rest != 0) return std::nullopt;
    const std::int64_t left = timegm(&date) - now.time_since_epoch().count();
    return std::chrono::seconds(std::clamp<std::int64_t>(left, 0, kLongestSeconds));
}

}  // namespace opensandbox::sdk
