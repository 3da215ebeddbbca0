#include "kube/api/client.hpp"

#include "http/message.hpp"

namespace opensandbox::kube {
namespace {

std::string about(const Resource& resource, const ObjectKey& key) {
    return std::string(resource.kind) + " " + to_string(key);
}

Result<json::object> object_of(std::string_view text) {
    auto document = json::parse(text);
    if (document && document->is_object()) return std::move(document->get_object());
    return Error(ErrorCode::protocol, "the API server's answer is no object");
}

void add_parameter(std::string& query, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    query += query.empty() ? '?' : '&';
    query.append(name).append("=").append(http::percent_encode(value));
}

std::string list_query(const ListChoice& choice) {
    std::string query;
    add_parameter(query, "labelSelector", choice.label_selector);
    add_parameter(query, "fieldSelector", choice.field_selector);
    if (choice.page > 0) add_parameter(query, "limit", std::to_string(choice.page));
    add_parameter(query, "continue", choice.page_token);
    // The token of a page stands for its version.
    if (choice.page_token.empty()) add_parameter(query, "resourceVersion", choice.resource_version);
    return query;
}

Result<ObjectList> list_of(std::string_view text, const json::Selection* selection) {
    auto document = selection ? json::parse_selected(text, *selection) : json::parse(text);
    if (!document) return document.error();
    if (!document->is_object()) return Error(ErrorCode::protocol, "must be an object");
    json::object& from = document->get_object();
    ObjectList list;
    if (json::value* items = from.if_contains("items"); items && items->is_array())
        list.items = std::move(items->get_array());
    if (const json::value* metadata = json::find(from, "metadata");
        metadata && metadata->is_object()) {
        auto version = json::get_string(metadata->get_object(), "resourceVersion");
        auto token = json::get_string(metadata->get_object(), "continue");
        if (!version || !token) return version ? token.error() : version.error();
        list.resource_version = version->value_or("");
        list.page_token = token->value_or("");
    }
    return list;
}

std::string_view content_type(PatchKind kind) {
    switch (kind) {
        case PatchKind::json: return "application/json-patch+json";
        case PatchKind::strategic: return "application/strategic-merge-patch+json";
        case PatchKind::merge: break;
    }
    return "application/merge-patch+json";
}

bool is_conditional(const json::value& patch) {
    if (!patch.is_object()) return false;
    const json::value* metadata = json::find(patch.get_object(), "metadata");
    return metadata && metadata->is_object() &&
           json::find(metadata->get_object(), "resourceVersion") != nullptr;
}

json::object deletion_options(const Deletion& deletion) {
    json::object options{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
    if (deletion.grace_seconds) options["gracePeriodSeconds"] = *deletion.grace_seconds;
    if (!deletion.propagation.empty()) options["propagationPolicy"] = deletion.propagation;
    json::object preconditions;
    if (!deletion.uid.empty()) preconditions["uid"] = deletion.uid;
    if (!deletion.resource_version.empty())
        preconditions["resourceVersion"] = deletion.resource_version;
    if (!preconditions.empty()) options["preconditions"] = std::move(preconditions);
    return options;
}

}  // namespace

Client::Client(Connection& connection, std::string field_manager)
    : connection_(connection),
      manager_query_("?fieldManager=" + http::percent_encode(field_manager)) {}

Awaitable<Result<json::object>> Client::call_for_object(Call call, std::string about) {
    auto body = co_await connection_.call(std::move(call));
    if (!body) co_return body.error().within(about);
    auto object = object_of(*body);
    if (!object) co_return object.error().within(about);
    co_return std::move(*object);
}

Awaitable<Result<json::object>> Client::get(Resource resource, ObjectKey key) {
    Call call;
    call.target = object_path(resource, key);
    co_return co_await call_for_object(std::move(call), about(resource, key));
}

Awaitable<Result<ObjectList>> Client::list(Resource resource, ListChoice choice) {
    Call call;
    call.target = collection_path(resource, choice.name_space) + list_query(choice);
    auto body = co_await connection_.call(std::move(call));
    if (!body) co_return body.error().within(resource.plural);
    auto list = list_of(*body, choice.selection.get());
    if (!list) co_return list.error().within("list of " + std::string(resource.plural));
    co_return std::move(*list);
}

Awaitable<Result<ObjectList>> Client::list_all(Resource resource, ListChoice choice) {
    ObjectList all;
    while (true) {
        auto page = co_await list(resource, choice);
        if (!page) {
            const bool expired =
                page.error().wire() == "Expired" && !choice.page_token.empty() && choice.page > 0;
            if (!expired) co_return page.error();
            choice.page = 0;
            choice.page_token.clear();
            all.items.clear();
            continue;
        }
        if (all.items.empty()) {
            all.items = std::move(page->items);
        } else {
            for (json::value& item : page->items)
                all.items.push_back(std::move(item));
        }
        all.resource_version = std::move(page->resource_version);
        if (page->page_token.empty()) co_return all;
        choice.page_token = std::move(page->page_token);
    }
}

Awaitable<Result<json::object>> Client::create(Resource resource, std::string name_space,
                                               json::object object) {
    Call call;
    call.method = "POST";
    call.target = collection_path(resource, name_space) + manager_query_;
    call.content = json::serialize(object);
    call.repeating = Repeating::harmful;
    co_return co_await call_for_object(std::move(call), std::string(resource.kind));
}

Awaitable<Result<json::object>> Client::replace(Resource resource, ObjectKey key,
                                                json::object object, std::string subresource) {
    Call call;
    call.method = "PUT";
    call.target = object_path(resource, key, subresource) + manager_query_;
    call.content = json::serialize(object);
    call.repeating = Repeating::harmful;
    co_return co_await call_for_object(std::move(call), about(resource, key));
}

Awaitable<Result<json::object>> Client::patch(Resource resource, ObjectKey key, Patch patch) {
    Call call;
    call.method = "PATCH";
    call.target = object_path(resource, key, patch.subresource) + manager_query_;
    call.content_type = content_type(patch.kind);
    call.content = json::serialize(patch.content);
    // A second one may add twice, or meet what the first one made.
    if (patch.kind == PatchKind::json || is_conditional(patch.content))
        call.repeating = Repeating::harmful;
    co_return co_await call_for_object(std::move(call), about(resource, key));
}

Awaitable<Result<json::object>> Client::apply(Resource resource, ObjectKey key, Apply apply) {
    Call call;
    call.method = "PATCH";
    call.target = object_path(resource, key, apply.subresource);
    std::string query;
    add_parameter(query, "fieldManager", apply.field_manager);
    add_parameter(query, "force", apply.force ? "true" : "");
    call.target += query;
    // JSON is YAML, too, which is all that the API server takes by this type.
    call.content_type = "application/apply-patch+yaml";
    call.content = json::serialize(apply.content);
    co_return co_await call_for_object(std::move(call), about(resource, key));
}

Awaitable<Status> Client::remove(Resource resource, ObjectKey key, Deletion deletion) {
    Call call;
    call.method = "DELETE";
    call.target = object_path(resource, key);
    call.content = json::serialize(deletion_options(deletion));
    auto body = co_await connection_.call(std::move(call));
    if (!body && body.error().code() != ErrorCode::not_found)
        co_return body.error().within(about(resource, key));
    co_return Status();
}

}  // namespace opensandbox::kube
