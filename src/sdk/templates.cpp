#include "opensandbox/templates.hpp"

#include "sdk/transport.hpp"
#include "sdk/wire.hpp"

namespace opensandbox::sdk {

namespace {

constexpr std::string_view kTemplates = "/templates";

std::string template_target(std::string_view id) {
    return std::string(kTemplates) + "/" + http::percent_encode(id);
}

/// An id is part of a path: an empty one would name the collection.
std::optional<Error> refuse_empty_template(std::string_view id) {
    if (!id.empty()) return std::nullopt;
    return Error(ErrorCode::invalid_argument, "the template id is empty");
}

}  // namespace

Awaitable<Result<TemplateInfo>> Templates::create(TemplateRequest request) const {
    auto body = wire::encode_template(request);
    if (!body) co_return body.error();
    Transport& transport = *connection_.transport();
    Call call("POST", std::string(kTemplates), std::move(*body));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_template(reply->body);
}

Awaitable<Result<TemplateInfo>> Templates::get(std::string id) const {
    if (auto refused = refuse_empty_template(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("GET", template_target(id));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_template(reply->body);
}

Awaitable<Result<TemplatePage>> Templates::list(TemplateFilter filter) const {
    Transport& transport = *connection_.transport();
    std::vector<std::pair<std::string, std::string>> query;
    if (!filter.metadata.empty()) {
        query.emplace_back("metadata", wire::encode_metadata_filter(filter.metadata));
    }
    if (filter.page) query.emplace_back("page", std::to_string(*filter.page));
    if (filter.page_size) query.emplace_back("pageSize", std::to_string(*filter.page_size));
    Call call("GET", std::string(kTemplates));
    if (!query.empty()) call.target += "?" + encode_query(query);
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return wire::decode_template_page(reply->body);
}

Awaitable<Status> Templates::remove(std::string id) const {
    if (auto refused = refuse_empty_template(id)) co_return *refused;
    Transport& transport = *connection_.transport();
    Call call("DELETE", template_target(id));
    auto reply = co_await transport.exchange(transport.lifecycle(), std::move(call));
    if (!reply) co_return reply.error();
    co_return Status();
}

}  // namespace opensandbox::sdk
