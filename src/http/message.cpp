#include "http/message.hpp"

#include <algorithm>

namespace opensandbox::http {

std::string_view RequestHead::path() const {
    return std::string_view(target).substr(0, target.find('?'));
}

std::string_view RequestHead::query() const {
    auto mark = target.find('?');
    return mark == std::string::npos ? std::string_view()
                                     : std::string_view(target).substr(mark + 1);
}

Response::Response(int s, std::string content_type, std::string b) : head(s), body(std::move(b)) {
    head.fields.add("Content-Type", std::move(content_type));
}

Response json_response(int status, std::string body) {
    return Response(status, "application/json", std::move(body));
}

Awaitable<Result<std::string>> read_all(BodyReader& body, std::size_t limit) {
    constexpr std::size_t kPiece = 16 * 1024;
    // A declared length is only a claim: more than this is allocated as the bytes arrive.
    constexpr std::size_t kTrustedLength = 1024 * 1024;
    limit = std::min(limit, SIZE_MAX / 4);
    auto too_large = [limit] {
        return Error(ErrorCode::too_large,
                     "the body is larger than " + std::to_string(limit) + " bytes");
    };
    auto declared = body.content_length();
    if (declared && *declared > limit) co_return too_large();
    // One byte more than may come, so that the last read sees the end without growing.
    std::string all;
    std::size_t filled = 0;
    std::uint64_t first = declared ? std::min<std::uint64_t>(*declared, kTrustedLength) : kPiece;
    all.resize(std::min(static_cast<std::size_t>(first), limit) + 1);
    while (true) {
        auto count = co_await body.read_some(std::span<char>(all).subspan(filled));
        if (!count) co_return count.error();
        if (*count == 0) break;
        filled += *count;
        if (filled > limit) co_return too_large();
        if (filled == all.size()) all.resize(std::min(filled * 2, limit + 1));
    }
    all.resize(filled);
    co_return all;
}

std::string_view reason_phrase(int status) {
    switch (status) {
        case 100: return "Continue";
        case 101: return "Switching Protocols";
        case 102: return "Processing";
        case 103: return "Early Hints";
        case 200: return "OK";
        case 201: return "Created";
        case 202: return "Accepted";
        case 203: return "Non-Authoritative Information";
        case 204: return "No Content";
        case 205: return "Reset Content";
        case 206: return "Partial Content";
        case 207: return "Multi-Status";
        case 300: return "Multiple Choices";
        case 301: return "Moved Permanently";
        case 302: return "Found";
        case 303: return "See Other";
        case 304: return "Not Modified";
        case 307: return "Temporary Redirect";
        case 308: return "Permanent Redirect";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 402: return "Payment Required";
        case 403: return "Forbidden";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 406: return "Not Acceptable";
        case 407: return "Proxy Authentication Required";
        case 408: return "Request Timeout";
        case 409: return "Conflict";
        case 410: return "Gone";
        case 411: return "Length Required";
        case 412: return "Precondition Failed";
        case 413: return "Content Too Large";
        case 414: return "URI Too Long";
        case 415: return "Unsupported Media Type";
        case 416: return "Range Not Satisfiable";
        case 417: return "Expectation Failed";
        case 418: return "I'm a teapot";
        case 421: return "Misdirected Request";
        case 422: return "Unprocessable Content";
        case 423: return "Locked";
        case 424: return "Failed Dependency";
        case 425: return "Too Early";
        case 426: return "Upgrade Required";
        case 428: return "Precondition Required";
        case 429: return "Too Many Requests";
        case 431: return "Request Header Fields Too Large";
        case 451: return "Unavailable For Legal Reasons";
        case 500: return "Internal Server Error";
        case 501: return "Not Implemented";
        case 502: return "Bad Gateway";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        case 505: return "HTTP Version Not Supported";
        case 507: return "Insufficient Storage";
        case 508: return "Loop Detected";
        case 511: return "Network Authentication Required";
        default: return "Unknown";
    }
}

}  // namespace opensandbox::http
