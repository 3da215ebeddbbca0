#include "cli/failure.hpp"

#include <algorithm>
#include <cctype>

namespace opensandbox::cli {

namespace {

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

bool mentions(const std::string& text, std::string_view words) {
    auto lower = [](unsigned char a, unsigned char b) { return std::tolower(a) == b; };
    return std::search(text.begin(), text.end(), words.begin(), words.end(), lower) != text.end();
}

std::string_view hint_for(const sdk::Error& error) {
    switch (error.code()) {
        case sdk::ErrorCode::unavailable:
            if (error.message().find("certificate") != std::string::npos) {
                return "SSL_CERT_FILE names the authorities to trust";
            }
            if (error.message().find("TLS with") != std::string::npos) {
                return "a server without TLS wants --protocol http";
            }
            return error.status() == 0
                       ? "start one with 'opensandbox serve', or name another with --server"
                       : "";
        case sdk::ErrorCode::unauthenticated:
            return "set it with --api-key, OPEN_SANDBOX_API_KEY or connection.api_key";
        default: return "";
    }
}

/// Errors are one line, whatever a server said.
std::string on_one_line(std::string text) {
    std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
    return text;
}

}  // namespace

Failure Failure::usage(std::string message) {
    Failure failure(sdk::Error(sdk::ErrorCode::invalid_argument, std::move(message)));
    failure.usage_ = true;
    return failure;
}

std::string Failure::describe() const {
    std::string text = error_.message();
    if (!error_.wire_code().empty()) text += " [" + error_.wire_code() + "]";
    if (auto hint = hint_for(error_); !hint.empty()) text += " (" + std::string(hint) + ")";
    return on_one_line(std::move(text));
}

int exit_code_of(const sdk::Execution& execution) {
    if (execution.exit_code) {
        const int code = *execution.exit_code;
        return code >= 0 && code <= 255 ? code : kFailed;
    }
    if (!execution.error) return kFailed;
    const std::string& why = execution.error->value;
    if (mentions(why, "not found") || mentions(why, "no such file")) return kNotFound;
    if (mentions(why, "permission denied") || mentions(why, "exec format")) return kNotExecutable;
    return kFailed;
}

std::string start_failure_of(const sdk::Execution& execution) {
    if (execution.exit_code || !execution.error) return {};
    return execution.error->value.empty() ? execution.error->name : execution.error->value;
}

}  // namespace opensandbox::cli
