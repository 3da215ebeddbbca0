#include "telemetry/otlp_settings.hpp"

#include "base/log.hpp"
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

std::string lower(std::string text) {
    for (char& c : text)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
}

/// What has been read so far.
struct Draft {
    std::string endpoint;
    bool off = false;
    OtlpSettings settings;
};

void set_endpoint(Draft& draft, std::string url, std::string_view path) {
    if (!draft.endpoint.empty() || url.empty()) return;
    while (!path.empty() && url.ends_with('/'))
        url.pop_back();
    draft.endpoint = url.append(path);
}

/// Headers come percent-encoded (OpenTelemetry specification, OTLP exporter).
void add_headers(Draft& draft, const std::string& list) {
    each_pair(list, [&](std::string_view name, std::string_view value) {
        std::string plain = http::percent_decode(value).value_or(std::string(value));
        bool safe = plain.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
        if (safe && is_field_name(name)) draft.settings.headers.set(name, std::move(plain));
    });
}

/// Milliseconds above 0; anything else changes nothing.
void set_time(std::chrono::milliseconds& time, const std::string& text) {
    std::uint32_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    bool good = error == std::errc() && end == text.data() + text.size() && number > 0;
    if (good) time = std::chrono::milliseconds(number);
}

void ignore(Draft& draft, std::string_view name, const std::string& value, std::string_view rule) {
    draft.settings.ignored.push_back(std::string(name) + ": '" + value + "' is none of " +
                                     std::string(rule));
}

constexpr std::string_view kExporter = "OTEL_METRICS_EXPORTER";
constexpr std::string_view kTemporality = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";

void choose_exporter(Draft& draft, const std::string& value) {
    const std::string name = lower(value);
    if (name == "none") {
        draft.off = true;
    } else if (name != "otlp") {
        ignore(draft, kExporter, value, "otlp and none");
    }
}

void choose_temporality(Draft& draft, const std::string& value) {
    const std::string name = lower(value);
    TemporalityPreference& chosen = draft.settings.temporality;
    if (name == "cumulative") {
        chosen = TemporalityPreference::cumulative;
    } else if (name == "delta") {
        chosen = TemporalityPreference::delta;
    } else if (name == "lowmemory") {
        chosen = TemporalityPreference::low_memory;
    } else {
        ignore(draft, kTemporality, value, "cumulative, delta and lowmemory");
    }
}

/// One variable of the environment. Of those that name an endpoint the first one counts; other
/// rows may replace what a row before them said.
struct Variable {
    std::string_view name;
    std::string_view meaning;
    void (*read)(Draft& draft, const std::string& value);  ///< the value is trimmed, not empty
};

constexpr std::array kVariables{
    Variable{"OTEL_SDK_DISABLED", "true: nothing is exported",
             [](Draft& d, const std::string& v) { d.off = d.off || lower(v) == "true"; }},
    Variable{kExporter, "none: nothing is exported (otlp)", choose_exporter},
    Variable{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "whole URL of the collector",
             [](Draft& d, const std::string& v) { set_endpoint(d, v, ""); }},
    Variable{"OTEL_EXPORTER_OTLP_ENDPOINT", "its URL up to /v1/metrics",
             [](Draft& d, const std::string& v) { set_endpoint(d, v, kMetricsPath); }},
    Variable{
        "HOST_IP", "its address, at port 4318",
        [](Draft& d, const std::string& v) { set_endpoint(d, collector_at(v), kMetricsPath); }},
    Variable{"OTEL_EXPORTER_OTLP_HEADERS", "name=value pairs between commas", add_headers},
    Variable{"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "the same, before the others", add_headers},
    Variable{"OTEL_EXPORTER_OTLP_TIMEOUT", "of one export, milliseconds (10000)",
             [](Draft& d, const std::string& v) { set_time(d.settings.timeout, v); }},
    Variable{"OTEL_METRIC_EXPORT_INTERVAL", "milliseconds (60000)",
             [](Draft& d, const std::string& v) { set_time(d.settings.interval, v); }},
    Variable{kTemporality, "cumulative, delta or lowmemory (lowmemory)", choose_temporality},
};

}  // namespace

Result<std::optional<OtlpSettings>> read_otlp_settings(const VariableLookup& environment,
                                                       std::string_view hostinfo) {
    Draft draft;
    for (const Variable& variable : kVariables) {
        std::string value(trim(environment(variable.name).value_or("")));
        if (!value.empty()) variable.read(draft, value);
    }
    set_endpoint(draft, collector_at(hostinfo), kMetricsPath);
    if (draft.off || draft.endpoint.empty()) return std::optional<OtlpSettings>();
    Result<http::Url> url = http::parse_url(draft.endpoint);
    if (!url) return url.error();
    draft.settings.endpoint = std::move(*url);
    if (draft.settings.endpoint.path.empty()) draft.settings.endpoint.path = "/";
    return std::optional<OtlpSettings>(std::move(draft.settings));
}

std::string otlp_help() {
    std::string text;
    for (const Variable& variable : kVariables) {
        text += "  ";
        text += variable.name;
        text += ": ";
        text += variable.meaning;
        text += '\n';
    }
    return text;
}

void log_ignored(const OtlpSettings& settings) {
    for (const std::string& what : settings.ignored)
        log::warn("a setting of metrics is ignored", {{"setting", what}});
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
