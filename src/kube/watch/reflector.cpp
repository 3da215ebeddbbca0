#include "kube/watch/reflector.hpp"

#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "http/message.hpp"
#include "kube/watch/event.hpp"

#include <array>

namespace opensandbox::kube {
namespace {

/// A stream that lasts so long was worth its beginning.
constexpr std::chrono::seconds kLongLife{5};
constexpr BackOff::Limits kPauses{BackOff::Pause(200), BackOff::Pause(30'000)};
/// Seconds after which the API server ends a stream, at least; at most twice as many.
constexpr int kShortestWatch = 300;
/// All of an object's metadata but managedFields, which is most of its bytes.
constexpr std::array<std::string_view, 11> kMetadata{
    "name",           "namespace",         "uid",         "resourceVersion",   "generation",
    "labels",         "creationTimestamp", "annotations", "deletionTimestamp", "finalizers",
    "ownerReferences"};

std::shared_ptr<const json::Selection> selection_of(const WatchChoice& choice,
                                                    const std::string& within,
                                                    std::vector<std::string> paths) {
    if (choice.members.empty()) return nullptr;
    for (std::string_view name : kMetadata)
        paths.push_back(within + ".metadata." + std::string(name));
    for (const std::string& member : choice.members)
        paths.push_back(within + "." + member);
    return std::make_shared<const json::Selection>(paths);
}

}  // namespace

WatchChoice watch_of(Resource resource, std::string name_space, std::string_view label,
                     std::vector<std::string> members) {
    WatchChoice choice;
    choice.resource = resource;
    choice.name_space = std::move(name_space);
    choice.label_selector = label;
    choice.members = std::move(members);
    return choice;
}

Reflector::Reflector(Client& client, WatchChoice choice, WatchSink& sink)
    : client_(client),
      choice_(std::move(choice)),
      sink_(sink),
      list_members_(selection_of(choice_, "items", {"metadata"})),
      event_members_(selection_of(choice_, "object", {"type"})),
      stop_(client.connection().executor()),
      pauses_(kPauses, std::random_device()()),
      chance_(std::random_device()()) {}

void Reflector::stop() {
    stopped_ = true;
    if (answer_) answer_->abort();
    stop_.notify();
}

Awaitable<void> Reflector::run() {
    using std::chrono::steady_clock;
    while (!stopped_) {
        const auto began = steady_clock::now();
        Status followed = co_await follow();
        follows_ = false;
        if (stopped_) co_return;
        if (!followed && followed.error().wire() == "Expired") {
            version_.clear();
        } else if (!followed) {
            complain(followed.error());
        }
        const bool lasted = steady_clock::now() - began >= kLongLife;
        if (lasted) pauses_.reset();
        // A stream that ends in order after a while is taken up at once.
        if (!followed || !lasted) co_await stop_.wait_for(pauses_.next());
    }
}

void Reflector::complain(const Error& error) {
    if (std::exchange(complained_, true)) return;
    log::warn("a watch of the cluster broke",
              {{"resource", choice_.resource.plural}, {"error", error.message()}});
}

Awaitable<Status> Reflector::follow() {
    if (!version_.empty()) co_return co_await watch(false);
    if (streams_lists_) {
        Status streamed = co_await watch(true);
        const bool refused = !streamed && streamed.error().code() == ErrorCode::invalid_argument;
        if (!refused) co_return streamed;
        streams_lists_ = false;
    }
    Status listed = co_await list();
    if (!listed) co_return listed;
    co_return co_await watch(false);
}

Awaitable<Status> Reflector::list() {
    ListChoice choice;
    choice.name_space = choice_.name_space;
    choice.label_selector = choice_.label_selector;
    choice.field_selector = choice_.field_selector;
    choice.selection = list_members_;
    auto listed = co_await client_.list_all(choice_.resource, std::move(choice));
    if (!listed) co_return listed.error();
    sink_.begin_listing();
    for (const json::value& item : listed->items)
        if (item.is_object()) sink_.put(item.get_object());
    sink_.end_listing(listed->resource_version);
    version_ = std::move(listed->resource_version);
    co_return Status();
}

std::string Reflector::target(bool from_the_beginning) {
    std::uniform_int_distribution<int> seconds(kShortestWatch, 2 * kShortestWatch);
    std::string target =
        collection_path(choice_.resource, choice_.name_space) +
        "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(seconds(chance_));
    if (from_the_beginning) {
        target += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    } else {
        target += "&resourceVersion=" + http::percent_encode(version_);
    }
    if (!choice_.label_selector.empty())
        target += "&labelSelector=" + http::percent_encode(choice_.label_selector);
    if (!choice_.field_selector.empty())
        target += "&fieldSelector=" + http::percent_encode(choice_.field_selector);
    return target;
}

Awaitable<Status> Reflector::watch(bool from_the_beginning) {
    Call call;
    call.target = target(from_the_beginning);
    auto answer = co_await client_.connection().open(std::move(call));
    if (!answer) co_return answer.error();
    if (stopped_) co_return Status();
    answer_ = answer->get();
    const ScopeExit closed([this] { answer_ = nullptr; });
    frames_ = FrameSplitter();
    listing_ = from_the_beginning;
    follows_ = !from_the_beginning;
    if (listing_) sink_.begin_listing();
    co_return co_await read_stream(answer->get());
}

Awaitable<Status> Reflector::read_stream(http::ClientResponse* answer) {
    bool silent = false;
    net::Deadline silence(client_.connection().executor(), choice_.silence, [&] {
        silent = true;
        answer->abort();
    });
    std::array<char, 16 * 1024> buffer{};
    while (true) {
        auto got = co_await answer->body().read_some(buffer);
        // It is taken up where it ended.
        if (silent) co_return Status();
        if (!got) co_return got.error();
        if (*got == 0) co_return Status();
        silence.extend(choice_.silence);
        Status taken = take({buffer.data(), *got});
        if (!taken) co_return taken;
    }
}

Status Reflector::take(std::string_view bytes) {
    Status fed = frames_.feed(bytes);
    if (!fed) return fed;
    while (auto line = frames_.next()) {
        auto event = read_event(*line, event_members_.get());
        if (!event) return event.error();
        take_event(std::move(*event));
    }
    return Status();
}

void Reflector::take_event(WatchEvent event) {
    switch (event.type) {
        case WatchEvent::Type::added:
        case WatchEvent::Type::modified: sink_.put(event.object); break;
        case WatchEvent::Type::deleted: sink_.remove(event.object); break;
        case WatchEvent::Type::bookmark: break;
    }
    if (listing_) {
        // What is there comes in no order of time: no place to go on from before its end.
        if (!event.initial_events_end) return;
        listing_ = false;
        follows_ = true;
        sink_.end_listing(event.resource_version);
    }
    version_ = std::move(event.resource_version);
    complained_ = false;
    sink_.reached(version_);
}

}  // namespace opensandbox::kube
