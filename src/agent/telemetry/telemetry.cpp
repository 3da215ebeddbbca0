#include "agent/telemetry/telemetry.hpp"

#include "agent/telemetry/measurements.hpp"
#include "agent/telemetry/system.hpp"
#include "base/log.hpp"
#include "net/task.hpp"
#include "version.hpp"

#include <algorithm>
#include <iterator>

namespace opensandbox::agent {
namespace {

constexpr std::string_view kScope = "opensandbox/execd";
constexpr std::chrono::milliseconds kFlushLimit{1'000};
constexpr std::size_t kLargestAnswer = std::size_t{64} * 1024;

telemetry::Attributes resource_of(const TelemetrySettings& settings) {
    telemetry::Attributes resource{{"service.name", std::string("opensandbox-execd-") + kVersion}};
    if (!settings.sandbox_id.empty()) resource.emplace_back("sandbox_id", settings.sandbox_id);
    return resource;
}

}  // namespace

Result<std::optional<TelemetrySettings>> read_telemetry_settings(const Environment& environment,
                                                                 std::string_view hostinfo) {
    const telemetry::VariableLookup lookup =
        [&](std::string_view name) -> std::optional<std::string> {
        const auto value = environment.get(name);
        if (!value) return std::nullopt;
        return std::string(*value);
    };
    auto shared = telemetry::read_otlp_settings(lookup, hostinfo);
    if (!shared) return shared.error();
    if (!*shared) return std::optional<TelemetrySettings>();
    TelemetrySettings settings(std::move(**shared));
    settings.sandbox_id = environment.get("OPENSANDBOX_ID").value_or("");
    const std::size_t begin = settings.sandbox_id.find_first_not_of(" \t\r\n");
    settings.sandbox_id.erase(0, begin);
    settings.sandbox_id.erase(settings.sandbox_id.find_last_not_of(" \t\r\n") + 1);
    if (!settings.sandbox_id.empty()) {
        settings.common_attributes.emplace_back("sandbox_id", settings.sandbox_id);
    }
    auto more = telemetry::read_attributes(
        environment.get("OPENSANDBOX_EXECD_METRICS_EXTRA_ATTRS").value_or(""));
    std::ranges::move(more, std::back_inserter(settings.common_attributes));
    return std::optional<TelemetrySettings>(std::move(settings));
}

struct Telemetry::State {
    State(asio::any_io_executor loop, const Environment& variables, FilePool& pool,
          http::Client& http, TelemetrySettings s)
        : executor(std::move(loop)),
          environment(variables),
          files(pool),
          client(http),
          settings(std::move(s)),
          ledger(settings.temporality, now()) {}

    Awaitable<SystemSample> sample() {
        std::function<Result<SystemSample>()> work = [this]() -> Result<SystemSample> {
            return sample_system(environment);
        };
        auto sampled = co_await files.run(std::nullopt, std::move(work));
        co_return sampled ? *sampled : SystemSample();
    }

    /// The body of one export.
    std::string encode(const SystemSample& sample) {
        telemetry::OtlpMetrics out(resource_of(settings), kScope, kVersion, ledger, now());
        measurements.write(out, settings.common_attributes);
        write_system(out, last_sample, sample, settings.common_attributes);
        return out.finish();
    }

    Awaitable<Status> post(std::string body, std::chrono::milliseconds limit);

    asio::any_io_executor executor;
    const Environment& environment;
    FilePool& files;
    http::Client& client;
    TelemetrySettings settings;
    telemetry::ExportLedger ledger;
    Measurements measurements;
    SystemSample last_sample;
    bool failing = false;  ///< warned of already
    bool closed = false;
};

Awaitable<Status> Telemetry::State::post(std::string body, std::chrono::milliseconds limit) {
    http::ClientRequest request("POST", settings.endpoint.path, settings.headers);
    request.head.fields.set("Content-Type", "application/x-protobuf");
    request.content = std::move(body);
    http::AbortHandle abort;
    request.abort = &abort;
    std::unique_ptr<http::ClientResponse> response;
    net::Deadline deadline(executor, limit, [&] {
        if (response) {
            response->abort();
        } else {
            abort.abort();
        }
    });
    auto sent = co_await client.send(settings.endpoint.origin, std::move(request));
    if (deadline.expired()) co_return Error(ErrorCode::timeout, "no answer in time");
    if (!sent) co_return sent.error();
    response = std::move(*sent);
    int status = response->head().status;
    auto answer = co_await http::read_all(response->body(), kLargestAnswer);
    if (!answer) co_return answer.error();
    if (status >= 200 && status < 300) co_return Status();
    co_return Error(ErrorCode::bad_gateway, "the collector answered " + std::to_string(status));
}

Telemetry::Telemetry(asio::any_io_executor executor, const Environment& environment,
                     FilePool& files, http::Client& client) {
    auto settings = read_telemetry_settings(environment, telemetry::read_hostinfo());
    if (!settings) {
        log::warn("metrics are not exported", {{"error", settings.error().message()}});
        return;
    }
    std::optional<TelemetrySettings>& wanted = *settings;
    if (!wanted) return;
    telemetry::log_ignored(*wanted);
    state_ = std::make_shared<State>(std::move(executor), environment, files, client,
                                     std::move(*wanted));
}

Telemetry::~Telemetry() {
    if (state_) state_->closed = true;
}

void Telemetry::request(std::string_view method, std::string_view route, int status,
                        Clock::duration took) {
    if (state_) state_->measurements.request(method, route, status, took);
}

void Telemetry::execution(std::string_view operation, bool success, Clock::duration took) {
    if (state_) state_->measurements.execution(operation, success, took);
}

void Telemetry::start() {
    if (state_) net::spawn(state_->executor, export_regularly(state_), "metrics export");
}

Awaitable<void> Telemetry::flush() {
    auto state = state_;
    if (state) co_await export_once(state, kFlushLimit);
}

Awaitable<void> Telemetry::export_regularly(std::shared_ptr<State> state) {
    state->last_sample = co_await state->sample();
    while (!state->closed) {
        co_await net::sleep_for(state->settings.interval);
        if (!state->closed) co_await export_once(state, state->settings.timeout);
    }
}

Awaitable<void> Telemetry::export_once(std::shared_ptr<State> state,
                                       std::chrono::milliseconds limit) {
    SystemSample sample = co_await state->sample();
    std::string body = state->encode(sample);
    state->last_sample = sample;
    Status sent = co_await state->post(std::move(body), limit);
    if (sent) state->ledger.taken();
    // One warning for each time that it begins to fail; what was not sent is in the next export.
    if (!sent && !state->failing) {
        log::warn("metrics could not be exported", {{"error", sent.error().message()}});
    }
    state->failing = !sent;
}

}  // namespace opensandbox::agent
