#include "telemetry/otlp_settings.hpp"

#include "base/unique_fd.hpp"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

namespace opensandbox::telemetry {
namespace {

constexpr std::string_view kMetricsPath = "/v1/metrics";

std::string_view trim(std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\n";
    std::size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string value_of(const VariableLookup& environment, std::string_view name) {
    return std::string(trim(environment(name).value_or("")));
}

/// The collector on the machine of an address; empty when the text is no address.
std::string collector_at(std::string_view text) {
    std::string address(trim(text));
    in6_addr parsed{};
    if (::inet_pton(AF_INET, address.c_str(), &parsed) == 1) return "http://" + address + ":4318";
    if (::inet_pton(AF_INET6, address.c_str(), &parsed) == 1) {
        return "http://[" + address + "]:4318";
    }
    return {};
}

/// The first of the sources that names one, with its path; empty for none.
std::string endpoint_of(const VariableLookup& environment, std::string_view hostinfo) {
    std::string url = value_of(environment, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
    if (!url.empty()) return url;
    url = value_of(environment, "OTEL_EXPORTER_OTLP_ENDPOINT");
    if (url.empty()) url = collector_at(environment("HOST_IP").value_or(""));
    if (url.empty()) url = collector_at(hostinfo);
    if (url.empty()) return {};
    while (url.ends_with('/'))
        url.pop_back();
    return url += kMetricsPath;
}

/// The `name=value` pairs of a list between commas; what is no pair is left out.
void each_pair(std::string_view list,
               const std::function<void(std::string_view, std::string_view)>& take) {
    while (!list.empty()) {
        std::size_t comma = list.find(',');
        std::string_view pair = list.substr(0, comma);
        list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
        std::size_t equals = pair.find('=');
        if (equals == std::string_view::npos) continue;
        std::string_view name = trim(pair.substr(0, equals));
        if (!name.empty()) take(name, trim(pair.substr(equals + 1)));
    }
}

bool is_field_name(std::string_view name) {
    constexpr std::string_view kForbidden = "()<>@,;:\\\"/[]?={} \t";
    for (char c : name) {
        auto byte = static_cast<unsigned char>(c);
        if (byte <= ' ' || byte >= 0x7f || kForbidden.find(c) != std::string_view::npos) {
            return false;
        }
    }
    return !name.empty();
}

/// Headers come percent-encoded (OpenTelemetry specification, OTLP exporter).
void add_headers(const VariableLookup& environment, std::string_view variable,
                 http::Fields& headers) {
    const std::string list = environment(variable).value_or("");
    each_pair(list, [&](std::string_view name, std::string_view value) {
        std::string plain = http::percent_decode(value).value_or(std::string(value));
        bool safe = plain.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
        if (safe && is_field_name(name)) headers.set(name, std::move(plain));
    });
}

/// Milliseconds above 0; the fallback for anything else.
std::chrono::milliseconds time_of(const VariableLookup& environment, std::string_view variable,
                                  std::chrono::milliseconds fallback) {
    std::string text = value_of(environment, variable);
    std::uint32_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    bool good = error == std::errc() && end == text.data() + text.size() && number > 0;
    return good ? std::chrono::milliseconds(number) : fallback;
}

}  // namespace

Result<std::optional<OtlpSettings>> read_otlp_settings(const VariableLookup& environment,
                                                       std::string_view hostinfo) {
    std::string endpoint = endpoint_of(environment, hostinfo);
    if (endpoint.empty()) return std::optional<OtlpSettings>();
    Result<http::Url> url = http::parse_url(endpoint);
    if (!url) return url.error();
    OtlpSettings settings;
    settings.endpoint = std::move(*url);
    if (settings.endpoint.path.empty()) settings.endpoint.path = "/";
    add_headers(environment, "OTEL_EXPORTER_OTLP_HEADERS", settings.headers);
    add_headers(environment, "OTEL_EXPORTER_OTLP_METRICS_HEADERS", settings.headers);
    settings.interval = time_of(environment, "OTEL_METRIC_EXPORT_INTERVAL", settings.interval);
    settings.timeout = time_of(environment, "OTEL_EXPORTER_OTLP_TIMEOUT", settings.timeout);
    return std::optional<OtlpSettings>(std::move(settings));
}

Attributes read_attributes(std::string_view list) {
    Attributes attributes;
    each_pair(list, [&](std::string_view name, std::string_view value) {
        attributes.emplace_back(std::string(name), std::string(value));
    });
    return attributes;
}

std::string read_hostinfo() {
    std::array<char, 256> text{};
    UniqueFd file(::open("/etc/hostinfo", O_RDONLY | O_CLOEXEC));
    ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : -1;
    return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

}  // namespace opensandbox::telemetry
