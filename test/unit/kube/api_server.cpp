#include "unit/kube/api_server.hpp"

#include "net/task.hpp"

#include <chrono>

namespace opensandbox::kube::testing {
namespace {

http::Response failure(int status, const std::string& reason, const std::string& message) {
    return http::json_response(status, json::serialize(json::object{{"kind", "Status"},
                                                                    {"status", "Failure"},
                                                                    {"reason", reason},
                                                                    {"code", status},
                                                                    {"message", message}}));
}

std::string text_at(const json::object& object, std::string_view member) {
    const json::value* metadata = json::find(object, "metadata");
    const json::value* found = metadata ? json::find(metadata->get_object(), member) : nullptr;
    return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

void merge(json::value& into, const json::value& patch) {
    if (!patch.is_object()) {
        into = patch;
        return;
    }
    if (!into.is_object()) into = json::object();
    for (const auto& member : patch.get_object()) {
        if (member.value().is_null()) {
            into.get_object().erase(member.key());
        } else {
            merge(into.get_object()[member.key()], member.value());
        }
    }
}

std::string collection_of(const std::string& path) {
    return path.substr(0, path.rfind('/'));
}

std::string frame(const std::string& type, const json::value& object) {
    return json::serialize(json::object{{"type", type}, {"object", object}}) + "\n";
}

json::object bookmark_at(std::uint64_t version, bool end) {
    json::object metadata{{"resourceVersion", std::to_string(version)}};
    if (end) metadata["annotations"] = json::object{{"k8s.io/initial-events-end", "true"}};
    return {{"metadata", std::move(metadata)}};
}

}  // namespace

void ApiServer::put(const std::string& path, json::object object) {
    const bool known = objects_.contains(path);
    json::value& metadata = object["metadata"];
    if (!metadata.is_object()) metadata = json::object();
    json::object& members = metadata.get_object();
    members["name"] = path.substr(path.rfind('/') + 1);
    members["resourceVersion"] = std::to_string(++version_);
    members["uid"] = known ? text_at(objects_.at(path), "uid") : "uid-" + std::to_string(++uids_);
    objects_[path] = std::move(object);
    record(known ? "MODIFIED" : "ADDED", path);
}

void ApiServer::erase(const std::string& path) {
    json::object& object = objects_.at(path);
    object["metadata"].get_object()["resourceVersion"] = std::to_string(++version_);
    record("DELETED", path);
    objects_.erase(path);
}

void ApiServer::record(const std::string& type, const std::string& path) {
    changes_.push_back({version_, type, path, objects_.at(path)});
}

Awaitable<void> ApiServer::answer(http::Exchange& exchange) {
    const http::RequestHead head = exchange.request();
    auto body = co_await http::read_all(exchange.body(), 1 << 20);
    const std::string path(head.path());
    http::Query query(head.query());
    last_target = head.target;
    last_content_type = std::string(head.fields.get("Content-Type").value_or(""));
    last_authorization = std::string(head.fields.get("Authorization").value_or(""));
    if (query.get("watch")) {
        ++requests["WATCH"];
        co_await watch(exchange, path, std::move(query));
        co_return;
    }
    const bool object = objects_.contains(path);
    const bool lists = head.method == "GET" && !object && (path.ends_with('s'));
    ++requests[lists ? "LIST" : head.method];
    if (!faults.empty()) {
        const Fault fault = faults.front();
        faults.pop_front();
        // A handler that returns without an answer in mid-stream has its connection cut.
        if (fault.status == 0) {
            (void)co_await exchange.start(http::ResponseHead(200, {{"Content-Length", "10"}}));
            co_return;
        }
        if (fault.status < 0) {
            co_await exchange.client_gone();
            co_return;
        }
        http::Response response = failure(fault.status, "Fault", "as told");
        if (!fault.retry_after.empty()) response.head.fields.set("Retry-After", fault.retry_after);
        co_await exchange.respond(std::move(response));
        co_return;
    }
    http::Response response;
    if (!expected_authorization.empty() && last_authorization != expected_authorization) {
        response = failure(401, "Unauthorized", "who are you");
    } else if (lists) {
        response = list(path, query);
    } else if (head.method == "GET") {
        response = object ? http::json_response(200, json::serialize(objects_.at(path)))
                          : failure(404, "NotFound", path + " not found");
    } else if (head.method == "DELETE") {
        response = remove(path, body ? *body : std::string());
    } else {
        response = write(head, path, body ? *body : std::string());
    }
    co_await exchange.respond(std::move(response));
}

http::Response ApiServer::list(const std::string& path, const http::Query& query) {
    std::size_t limit = objects_.size();
    if (query.get("limit") && page_size > 0) limit = page_size;
    const std::string from(query.get("continue").value_or(""));
    if (from.starts_with("expired")) return failure(410, "Expired", "that page is gone");
    json::array items;
    std::string next;
    for (auto at = objects_.lower_bound(from.empty() ? path : from); at != objects_.end(); ++at) {
        if (collection_of(at->first) != path) continue;
        if (items.size() == limit) {
            next = at->first;
            break;
        }
        items.push_back(at->second);
    }
    json::object metadata{{"resourceVersion", version()}};
    if (!next.empty()) metadata["continue"] = next;
    return http::json_response(
        200, json::serialize(json::object{{"metadata", metadata}, {"items", std::move(items)}}));
}

http::Response ApiServer::write(const http::RequestHead& head, const std::string& path,
                                const std::string& body) {
    auto document = json::parse(body);
    if (!document || !document->is_object()) return failure(400, "BadRequest", "no object");
    json::object object = document->get_object();
    std::string at = path;
    if (head.method == "POST") {
        at += "/" + text_at(object, "name");
        if (objects_.contains(at)) return failure(409, "AlreadyExists", at + " already exists");
    } else if (!objects_.contains(at)) {
        return failure(404, "NotFound", at + " not found");
    }
    const std::string wanted = text_at(object, "resourceVersion");
    if (head.method != "POST" && !wanted.empty() &&
        wanted != text_at(objects_.at(at), "resourceVersion")) {
        return failure(409, "Conflict", "the object has been modified");
    }
    if (head.method == "PATCH") {
        json::value merged = objects_.at(at);
        merge(merged, object);
        object = merged.get_object();
    }
    put(at, std::move(object));
    return http::json_response(head.method == "POST" ? 201 : 200, json::serialize(objects_.at(at)));
}

http::Response ApiServer::remove(const std::string& path, const std::string& body) {
    if (!objects_.contains(path)) return failure(404, "NotFound", path + " not found");
    auto options = json::parse(body);
    if (options && options->is_object()) {
        const json::value* wanted = json::find(options->get_object(), "preconditions");
        const json::value* uid = wanted ? json::find(wanted->get_object(), "uid") : nullptr;
        if (uid && uid->get_string() != text_at(objects_.at(path), "uid"))
            return failure(409, "Conflict", "another uid");
    }
    erase(path);
    return http::json_response(200, R"({"kind":"Status","status":"Success"})");
}

Awaitable<void> ApiServer::watch(http::Exchange& exchange, std::string path, http::Query query) {
    const bool lists = query.get("sendInitialEvents").has_value();
    if (lists && !streams_lists) {
        co_await exchange.respond(failure(422, "Invalid", "sendInitialEvents: Forbidden"));
        co_return;
    }
    (void)co_await exchange.start(http::ResponseHead(200, {{"Content-Type", "application/json"}}));
    std::uint64_t seen = lists ? version_ : std::stoull(std::string(*query.get("resourceVersion")));
    if (seen < compacted_ && !lists) {
        (void)co_await exchange.write(
            frame("ERROR", json::object{{"code", 410}, {"reason", "Expired"}, {"message", "old"}}));
        (void)co_await exchange.finish();
        co_return;
    }
    if (lists) {
        std::string first;
        for (const auto& [at, object] : objects_)
            if (collection_of(at) == path) first += frame("ADDED", object);
        first += frame("BOOKMARK", bookmark_at(seen, true));
        (void)co_await exchange.write(first);
    }
    const std::uint64_t cuts = cuts_;
    std::uint64_t bookmarks = bookmarks_;
    Status written;
    while (written && cuts == cuts_ && !ends_watches) {
        std::string news;
        for (const Change& change : changes_) {
            if (change.version <= seen) continue;
            seen = change.version;
            if (collection_of(change.path) == path) news += frame(change.type, change.object);
        }
        if (std::exchange(bookmarks, bookmarks_) != bookmarks_)
            news += frame("BOOKMARK", bookmark_at(seen, false));
        if (!news.empty()) written = co_await exchange.write(news);
        co_await net::sleep_for(std::chrono::milliseconds(2));
    }
    if (written) (void)co_await exchange.finish();
}

}  // namespace opensandbox::kube::testing
