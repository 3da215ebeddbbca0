#include "agent/telemetry/measurements.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::agent {
namespace {

using telemetry::Attributes;
using telemetry::OtlpMetrics;

/// Milliseconds; the default buckets of OpenTelemetry.
constexpr std::array kBounds{0.0,   5.0,   10.0,   25.0,   50.0,   75.0,   100.0,  250.0,
                             500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0, 10000.0};

constexpr std::array<std::string_view, 8> kMethods{"GET",   "POST", "PUT",     "DELETE",
                                                   "PATCH", "HEAD", "OPTIONS", "CONNECT"};

struct FileRoute {
    std::string_view method;
    std::string_view route;
    std::string_view operation;
};
constexpr FileRoute kFileRoutes[] = {
    {"GET", "/files/info", "info"},          {"DELETE", "/files", "delete"},
    {"POST", "/files/permissions", "chmod"}, {"POST", "/files/mv", "rename"},
    {"POST", "/directories", "mkdir"},       {"DELETE", "/directories", "rmdir"},
    {"GET", "/directories/list", "listdir"}, {"GET", "/files/search", "search"},
    {"POST", "/files/replace", "replace"},   {"POST", "/files/upload", "upload"},
    {"GET", "/files/download", "download"},
};

double milliseconds(Measurements::Duration took) {
    return std::chrono::duration<double, std::milli>(took).count();
}

template <class Map, class Key>
void observe(Map& map, Key key, Measurements::Duration took) {
    map.try_emplace(std::move(key), std::span<const double>(kBounds))
        .first->second.observe(milliseconds(took));
}

Attributes joined(Attributes attributes, const Attributes& common) {
    attributes.insert(attributes.end(), common.begin(), common.end());
    return attributes;
}

}  // namespace

void Measurements::request(std::string_view method, std::string_view route, int status,
                           Duration took) {
    // A client may send any word: what is kept stays bounded.
    bool known = std::ranges::find(kMethods, method) != kMethods.end();
    RequestKind kind(std::string(known ? method : "_OTHER"), route_label(route), status);
    observe(requests_, std::move(kind), took);
    std::string_view operation = file_operation(method, route);
    if (operation.empty()) return;
    observe(file_operations_, OperationKind(std::string(operation), status < 400), took);
}

void Measurements::execution(std::string_view operation, bool success, Duration took) {
    observe(executions_, OperationKind(std::string(operation), success), took);
}

void Measurements::write(OtlpMetrics& out, const Attributes& common) const {
    out.metric(OtlpMetrics::Kind::histogram, "execd.http.request.duration", "ms",
               "Duration of HTTP requests");
    for (const auto& [kind, histogram] : requests_) {
        Attributes attributes{{"http_method", kind.method},
                              {"http_route", kind.route},
                              {"http_status_code", std::int64_t{kind.status}}};
        out.point(histogram, joined(std::move(attributes), common));
    }
    out.metric(OtlpMetrics::Kind::histogram, "execd.execution.duration", "ms",
               "Duration of code and command executions");
    write_operations(out, executions_, common);
    out.metric(OtlpMetrics::Kind::histogram, "execd.filesystem.operations.duration", "ms",
               "Duration of file operations");
    write_operations(out, file_operations_, common);
}

void Measurements::write_operations(OtlpMetrics& out, const Operations& operations,
                                    const Attributes& common) {
    for (const auto& [kind, histogram] : operations) {
        Attributes attributes{{"operation", kind.operation},
                              {"result", kind.success ? "success" : "failure"}};
        out.point(histogram, joined(std::move(attributes), common));
    }
}

std::string_view file_operation(std::string_view method, std::string_view route) {
    // The same operations as a user, or in an isolated session (execd 6.9 and 9).
    if (route.starts_with("/v1/")) route.remove_prefix(route.rfind('}') + 1);
    for (const FileRoute& known : kFileRoutes) {
        if (known.method == method && known.route == route) return known.operation;
    }
    return {};
}

std::string route_label(std::string_view pattern) {
    if (pattern.empty()) return "unknown";
    std::string label;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        if (pattern[at] != '{') {
            label += pattern[at];
            continue;
        }
        std::size_t close = pattern.find('}', at);
        std::string_view name = pattern.substr(at + 1, close - at - 1);
        bool rest = name.ends_with("...");
        if (rest) name.remove_suffix(3);
        label += rest ? '*' : ':';
        label += name;
        if (close == std::string_view::npos) break;
        at = close;
    }
    return label;
}

}  // namespace opensandbox::agent
