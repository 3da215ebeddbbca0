#include "egress/guard/reply.hpp"

#include <algorithm>
#include <span>

namespace opensandbox::egress {

http::Response text_error(int status, std::string_view line) {
    http::Response response(status, "text/plain; charset=utf-8", std::string(line) + "\n");
    response.head.fields.set("X-Content-Type-Options", "nosniff");
    return response;
}

http::Response text_error(const Error& error) {
    std::string line = error.message();
    std::ranges::replace(line, '\n', ' ');
    switch (error.code()) {
        case ErrorCode::invalid_argument: return text_error(400, line);
        case ErrorCode::not_found: return text_error(404, line);
        case ErrorCode::conflict: return text_error(409, line);
        case ErrorCode::too_large: return text_error(413, line);
        case ErrorCode::unavailable: return text_error(503, line);
        default: return text_error(500, line);
    }
}

http::Response method_not_allowed(std::string_view allowed) {
    http::Response response = text_error(405, "method not allowed");
    response.head.fields.set("Allow", std::string(allowed));
    return response;
}

Awaitable<Result<std::string>> read_cut(http::BodyReader& body, std::size_t limit) {
    std::string bytes;
    while (bytes.size() < limit) {
        const std::size_t before = bytes.size();
        bytes.resize(std::min(limit, before + 16 * 1024));
        const Result<std::size_t> got =
            co_await body.read_some(std::span<char>(bytes).subspan(before));
        bytes.resize(before + (got ? *got : 0));
        if (!got) co_return got.error();
        if (*got == 0) break;
    }
    co_return bytes;
}

}  // namespace opensandbox::egress
