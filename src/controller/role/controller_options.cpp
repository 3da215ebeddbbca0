#include "controller/role/controller_options.hpp"

#include "options/help.hpp"
#include "options/line_reader.hpp"
#include "options/setters.hpp"

#include <array>
#include <optional>

namespace opensandbox::controller {
namespace {

constexpr options::Grammar kGrammar{.go = true,
                                    .unknown = "unknown flag '{word}'",
                                    .missing = "{name}: needs a value",
                                    .refused = "{name}: '{value}' must be {rule}"};

constexpr std::int64_t kMostRequests = 100'000;
constexpr std::int64_t kMostWorkers = 1024;
constexpr std::int64_t kLongest = 86'400;

/// Of the published controller, for what this one does otherwise or not yet: manifests that set
/// them still start it.
constexpr std::array<std::string_view, 22> kForeign{
    "-webhook-cert-path",   "-webhook-cert-name",     "-webhook-cert-key",
    "-metrics-cert-path",   "-metrics-cert-name",     "-metrics-cert-key",
    "-metrics-secure",      "-enable-http2",          "-allow-weak-tls-keylengths",
    "-enable-file-log",     "-log-file-path",         "-log-max-size",
    "-log-max-backups",     "-log-max-age",           "-log-compress",
    "-expectation-timeout", "-image-committer-image", "-containerd-socket-path",
    "-commit-job-timeout",  "-snapshot-registry",     "-snapshot-push-secret",
    "-resume-pull-secret"};

/// "batchsandbox=32;pool=128".
struct Workers {
    std::int64_t batches = ControllerOptions().workers;
    std::int64_t pools = ControllerOptions().pool_workers;
};
std::optional<Workers> workers_of(const std::string& text) {
    Workers workers;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find(';'));
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos) return std::nullopt;
        const auto number = options::whole_number(part.substr(equals + 1), 1, kMostWorkers);
        if (!number) return std::nullopt;
        if (part.substr(0, equals) == "batchsandbox") workers.batches = *number;
        if (part.substr(0, equals) == "pool") workers.pools = *number;
    }
    return workers;
}

std::optional<log::Level> level_of(const std::string& text) {
    if (text == "debug") return log::Level::debug;
    if (text == "info") return log::Level::info;
    if (text == "error" || text == "panic") return log::Level::error;
    return std::nullopt;
}

std::optional<log::Format> format_of(const std::string& text) {
    if (text == "json") return log::Format::json;
    if (text == "console" || text == "text") return log::Format::text;
    return std::nullopt;
}

std::optional<std::string> address_of(const std::string& text) {
    return text == "0" || parse_probe_address(text) ? std::optional(text) : std::nullopt;
}

std::vector<options::Option> table_of(ControllerOptions& into) {
    using options::bound;
    const auto truth = [](bool& member) {
        return options::value(
            member,
            [](const std::string& text) -> std::optional<bool> {
                if (text == "true" || text == "1") return true;
                if (text == "false" || text == "0") return false;
                return std::nullopt;
            },
            "true or false");
    };
    std::vector<options::Option> table{
        bound({"-kubeconfig", 0, "FILE",
               "default: $KUBECONFIG, the pod's own account, ~/.kube/config"},
              options::text(into.kubeconfig)),
        bound({"-context", 0, "NAME", "of the kubeconfig (its current one)"},
              options::text(into.context)),
        bound({"-namespace", 0, "NAME", "of objects (all namespaces)"},
              options::text(into.name_space)),
        bound({"-leader-elect", 0, "", "work only while holding the lease"},
              truth(into.leader_elect)),
        bound({"-leader-election-namespace", 0, "NAME", "of the lease (the pod's)"},
              options::text(into.leader_election_namespace)),
        bound({"-health-probe-bind-address", 0, "ADDRESS", "/healthz and /readyz (:8081); 0: off"},
              options::value(into.probe_address, address_of, "HOST:PORT, :PORT or 0")),
        bound({"-metrics-bind-address", 0, "ADDRESS", "/metrics (0: off)"},
              options::value(into.metrics_address, address_of, "HOST:PORT, :PORT or 0")),
        bound({"-kube-client-qps", 0, "N", "requests a second to the API server (100); 0: any"},
              options::number(into.client_qps, 0, kMostRequests)),
        bound({"-kube-client-burst", 0, "N", "requests at once (200)"},
              options::number(into.client_burst, 0, kMostRequests)),
        bound({"-concurrency", 0, "WORKERS", "batchsandbox=N;pool=N worked at at once (32, 16)"},
              [&into](const std::string& text) -> std::string {
                  const auto workers = workers_of(text);
                  if (!workers) return "batchsandbox=N;pool=N";
                  into.workers = workers->batches;
                  into.pool_workers = workers->pools;
                  return {};
              }),
        bound({"-pod-recovery-stuck-threshold", 0, "SECONDS",
               "that a pod may hang before it is replaced (60)"},
              options::number(into.stuck_seconds, 1, kLongest)),
        bound({"-pod-recovery-max-attempts", 0, "N", "replacements a replica (3)"},
              options::number(into.recovery_attempts, 0, kMostWorkers)),
        bound({"-zap-log-level", 0, "LEVEL", "debug, info or error (info)"},
              options::value(into.log_level, level_of, "debug, info or error")),
        bound({"-zap-encoder", 0, "FORMAT", "json or console (json)"},
              options::value(into.log_format, format_of, "json or console")),
        bound({"-help", 'h'}, options::constant(into.help, true)),
    };
    for (const std::string_view name : kForeign) {
        options::Option foreign{.name = name, .value = "VALUE"};
        const bool flag = name == "-metrics-secure" || name == "-enable-http2" ||
                          name == "-allow-weak-tls-keylengths" || name == "-enable-file-log" ||
                          name == "-log-compress";
        if (flag) foreign.value = {};
        table.push_back(bound(foreign, [&into, name](const std::string&) {
            into.ignored.emplace_back(name);
            return std::string();
        }));
    }
    return table;
}

}  // namespace

Result<ControllerOptions> parse_controller_options(const std::vector<std::string>& arguments) {
    ControllerOptions read;
    auto parsed = options::parse(table_of(read), kGrammar, arguments);
    if (!parsed) return parsed.error();
    if (!parsed->empty()) return invalid("unexpected argument '" + parsed->front() + "'");
    return read;
}

Result<ProbeAddress> parse_probe_address(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) return invalid("'" + text + "' has no port");
    const auto port =
        options::whole_number(std::string_view(text).substr(colon + 1), 1, UINT16_MAX);
    if (!port) return invalid("'" + text + "' has no port");
    std::string host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (host.empty()) host = "::";
    return ProbeAddress(host, static_cast<std::uint16_t>(*port));
}

std::string controller_usage() {
    constexpr std::size_t kColumn = 39;
    ControllerOptions none;
    return "usage: opensandbox controller [flags]\n"
           "       opensandbox controller manifests [flags]\n"
           "The Kubernetes controller: makes the pods of BatchSandboxes and says how they are.\n" +
           options::help_rows(table_of(none), kColumn) +
           "Exit codes: 0 after SIGTERM or SIGINT, 1 when it cannot start or another leads, 2 for "
           "wrong usage.\n";
}

}  // namespace opensandbox::controller
