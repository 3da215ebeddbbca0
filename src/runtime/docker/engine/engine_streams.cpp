#include "runtime/docker/engine/decode.hpp"
#include "runtime/docker/engine/engine.hpp"
#include "runtime/docker/engine/engine_state.hpp"
#include "runtime/docker/engine/line_stream.hpp"
#include "runtime/docker/engine/log_decoder.hpp"

#include <algorithm>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::size_t kPiece = 64 * 1024;
/// How much of a log is read in search of its newest bytes.
constexpr std::size_t kMaxLogRead = std::size_t(256) * 1024 * 1024;

/// Seconds since the epoch with nine digits of fraction, as the engine takes times.
std::string engine_time(std::int64_t nanoseconds) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    std::string fraction = std::to_string(nanoseconds % kSecond);
    fraction.insert(0, 9 - std::min<std::size_t>(9, fraction.size()), '0');
    return std::to_string(nanoseconds / kSecond) + "." + fraction;
}

std::string engine_time(Timestamp time) {
    std::int64_t micros = std::max<std::int64_t>(0, time.time_since_epoch().count());
    constexpr std::int64_t kSecond = 1'000'000;
    std::string fraction = std::to_string(micros % kSecond);
    fraction.insert(0, 6 - fraction.size(), '0');
    return std::to_string(micros / kSecond) + "." + fraction + "000";
}

EngineCall log_call(const LogRequest& request) {
    EngineCall call("GET", "/containers/" + path_part(request.container) + "/logs");
    call.with("stdout", request.out ? "1" : "0").with("stderr", request.err ? "1" : "0");
    call.with("tail", request.tail ? std::to_string(*request.tail) : "all");
    if (request.since) call.with("since", engine_time(*request.since));
    if (request.timestamps) call.with("timestamps", "1");
    return call;
}

Awaitable<Result<LogOutput>> read_log(EngineStream& stream, bool tty, std::size_t max_bytes) {
    LogFrameDecoder frames;
    NewestBytes newest(max_bytes);
    std::string piece(kPiece, '\0');
    std::size_t received = 0;
    LogFrameDecoder::Sink keep = [&newest](LogFrameDecoder::Source, std::string_view bytes) {
        newest.append(bytes);
    };
    while (received < kMaxLogRead) {
        auto count = co_await stream.read_some(piece);
        if (!count) co_return count.error();
        if (*count == 0) break;
        received += *count;
        std::string_view bytes(piece.data(), *count);
        if (tty) {
            newest.append(bytes);
            continue;
        }
        auto decoded = frames.feed(bytes, keep);
        if (!decoded) {
            co_return stream.named(Error(ErrorCode::bad_gateway, decoded.error().message()));
        }
    }
    bool whole = received < kMaxLogRead;
    if (whole && !frames.complete()) {
        co_return stream.named(Error(ErrorCode::bad_gateway, "a log ended inside a frame"));
    }
    LogOutput output;
    output.text = newest.take();
    output.truncated = newest.dropped() || !whole;
    co_return output;
}

class EngineEvents final : public EventStream {
  public:
    EngineEvents(std::shared_ptr<DocumentStream> documents, EventFilter filter)
        : documents_(std::move(documents)), filter_(std::move(filter)) {}
    ~EngineEvents() override { documents_->close(); }

    Awaitable<Result<EngineEvent>> next() override {
        // A read in flight ends after the stream that it was begun on.
        auto documents = documents_;
        EventFilter filter = filter_;
        while (true) {
            auto document = co_await documents->next();
            if (!document) co_return document.error();
            if (!*document) {
                co_return documents->named(
                    Error(ErrorCode::unavailable, "the engine ended the stream of events"));
            }
            auto event = decode_event(**document);
            if (!event) co_return documents->named(event.error());
            if (filter.matches(*event)) co_return event;
        }
    }
    void close() override { documents_->close(); }

  private:
    std::shared_ptr<DocumentStream> documents_;
    EventFilter filter_;
};

}  // namespace

Awaitable<Result<LogOutput>> Engine::container_logs(LogRequest request) {
    Transport& transport = state_->transport;
    bool tty = request.tty.value_or(false);
    if (!request.tty) {
        auto container = co_await inspect_container(request.container);
        if (!container) co_return container.error();
        tty = container->tty;
    }
    EngineCall call = log_call(request);
    auto stream = co_await transport.open(std::move(call), transport.options().call_timeout);
    if (!stream) co_return stream.error();
    co_return co_await read_log(**stream, tty, request.max_bytes);
}

Awaitable<Status> Engine::upload_archive(std::string id, std::string directory, std::string tar) {
    Transport& transport = state_->transport;
    EngineCall call("PUT", "/containers/" + path_part(id) + "/archive");
    call.with("path", directory);
    call.content_type = "application/x-tar";
    call.content = std::move(tar);
    auto answer = co_await transport.open(std::move(call), transport.options().call_timeout);
    if (!answer) co_return answer.error();
    co_return Status();
}

Awaitable<Status> Engine::upload_archive(std::string id, std::string directory,
                                         http::BodyReader& tar) {
    Transport& transport = state_->transport;
    EngineCall call("PUT", "/containers/" + path_part(id) + "/archive");
    call.with("path", directory);
    call.content_type = "application/x-tar";
    call.stream = &tar;
    auto answer = co_await transport.open(std::move(call), transport.options().call_timeout);
    if (!answer) co_return answer.error();
    co_return Status();
}

Awaitable<Status> Engine::download_archive(std::string id, std::string path, std::size_t limit,
                                           std::function<Status(std::string_view)> sink) {
    Transport& transport = state_->transport;
    EngineCall call("GET", "/containers/" + path_part(id) + "/archive");
    call.with("path", path);
    auto stream = co_await transport.open(std::move(call), transport.options().call_timeout);
    if (!stream) co_return stream.error();
    std::string piece(kPiece, '\0');
    std::size_t received = 0;
    while (true) {
        auto count = co_await (*stream)->read_some(piece);
        if (!count) co_return count.error();
        if (*count == 0) co_return Status();
        received += *count;
        if (received > limit) {
            co_return transport.named(
                Error(ErrorCode::too_large,
                      path + " has more than " + std::to_string(limit) + " bytes as an archive"));
        }
        auto taken = sink(std::string_view(piece.data(), *count));
        if (!taken) co_return taken.error();
    }
}

Awaitable<Result<std::unique_ptr<EventStream>>> Engine::watch_events(EventFilter filter) {
    Transport& transport = state_->transport;
    EngineCall call("GET", "/events");
    // The rest of the filter is ours: Podman names actions otherwise and takes no label without a
    // value.
    std::vector<std::string> labels = filter.labels;
    std::erase_if(labels,
                  [](const std::string& label) { return label.find('=') == std::string::npos; });
    call.with("filters", filters_json({{"type", &filter.types}, {"label", &labels}}));
    if (filter.since_ns > 0) call.with("since", engine_time(filter.since_ns));
    auto stream = co_await transport.open(std::move(call), std::chrono::milliseconds(0));
    if (!stream) co_return stream.error();
    auto documents =
        std::make_shared<DocumentStream>(std::move(*stream), transport.options().max_line);
    co_return std::make_unique<EngineEvents>(std::move(documents), std::move(filter));
}

}  // namespace opensandbox::runtime::docker
