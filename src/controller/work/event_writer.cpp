#include "controller/work/event_writer.hpp"

#include "base/identifier.hpp"
#include "base/log.hpp"
#include "net/task.hpp"
#include "runtime/kubernetes/names.hpp"

namespace opensandbox::controller {

void EventWriter::tell(const kube::Resource& resource, const kube::Metadata& about,
                       const std::string& type, const std::string& reason, std::string message) {
    constexpr std::size_t kLongest = 1000;
    if (message.size() > kLongest) message.resize(kLongest);
    const std::string at = to_rfc3339(std::chrono::floor<std::chrono::seconds>(now()));
    json::object involved{{"apiVersion", kube::api_version(resource)},
                          {"kind", resource.kind},
                          {"name", about.name},
                          {"namespace", about.name_space},
                          {"uid", about.uid}};
    json::object event{{"apiVersion", "v1"},  {"kind", "Event"},    {"type", type},
                       {"reason", reason},    {"message", message}, {"firstTimestamp", at},
                       {"lastTimestamp", at}, {"count", 1}};
    event["metadata"] =
        json::object{{"name", about.name + "." + new_hex_id()}, {"namespace", about.name_space}};
    event["involvedObject"] = std::move(involved);
    event["source"] = json::object{{"component", "opensandbox-controller"}};
    log::info(reason, {{"kind", resource.kind},
                       {"object", about.name_space + "/" + about.name},
                       {"message", message}});
    net::spawn(executor_, write(std::move(event), about.name_space), "write an event");
}

Awaitable<void> EventWriter::write(json::object event, std::string name_space) {
    auto written = co_await client_.create(runtime::kubernetes::kEvents, std::move(name_space),
                                           std::move(event));
    // A namespace that goes takes no more of them.
    if (!written && written.error().code() != ErrorCode::not_found)
        log::debug("no event", {{"error", written.error().message()}});
}

}  // namespace opensandbox::controller
