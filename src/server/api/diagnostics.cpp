#include "json/document.hpp"
#include "lifecycle/lifecycle.hpp"
#include "server/api/request_body.hpp"
#include "server/api/routes.hpp"
#include "server/diagnostics/pages.hpp"
#include "server/error_response.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::server {
namespace {

using diagnostics::Cut;
using diagnostics::Page;
using diagnostics::Parameters;

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
constexpr std::string_view kNoLogs = "(no logs)";
constexpr std::int64_t kShownLines = 100;
constexpr std::size_t kShownEvents = 50;

/// Of the two kinds that have scopes, the name of the one that exists beside `all`.
struct ScopedKind {
    std::string_view kind;
    std::string_view scope;
    std::string_view warning;  ///< of scope `all`
};
constexpr ScopedKind kLogs{"logs", "container",
                           "scope 'all': this runtime has container logs only."};
constexpr ScopedKind kEvents{"events", "runtime",
                             "scope 'all': this runtime has runtime events only."};

std::optional<Error> refuse_scope(const ScopedKind& kind, std::string_view scope) {
    if (scope == kind.scope || scope == "all") return std::nullopt;
    return Error(ErrorCode::invalid_argument, "DIAGNOSTICS_SCOPE_UNSUPPORTED",
                 "scope: '" + std::string(scope) + "' must be " + std::string(kind.scope) +
                     " or all for " + std::string(kind.kind) + ".");
}

/// Bytes of the text as a JSON reader gets it: what is no UTF-8 was replaced.
std::size_t delivered_length(const std::string& text, const std::string& as_json) {
    if (is_utf8(text)) return text.size();
    auto read = json::parse(as_json);
    return read && read->is_string() ? read->get_string().size() : text.size();
}

/// The stable JSON form.
http::Response json_form(const ScopedKind& kind, std::string_view sandbox_id,
                         std::string_view scope, const Cut& cut) {
    std::string content = model::json_string(cut.text);
    std::size_t length = delivered_length(cut.text, content);
    std::string body = "{\"sandboxId\":" + model::json_string(sandbox_id) +
                       ",\"kind\":" + model::json_string(kind.kind) +
                       ",\"scope\":" + model::json_string(scope) +
                       ",\"delivery\":\"inline\",\"contentType\":\"text/plain; charset=utf-8\""
                       ",\"content\":" +
                       content + ",\"contentLength\":" + std::to_string(length) +
                       ",\"truncated\":" + (cut.truncated ? "true" : "false");
    if (scope == "all") body += ",\"warnings\":[" + model::json_string(kind.warning) + "]";
    return http::json_response(200, body + "}");
}

http::Response text_form(std::string text, bool deprecated) {
    http::Response response(200, std::string(kPlainText), std::move(text));
    if (deprecated) response.head.fields.set("Deprecation", "true");
    return response;
}

/// The last `tail` lines; one more is read to know whether there are more.
Awaitable<Result<Cut>> read_logs(lifecycle::Lifecycle& lifecycle, std::string id,
                                 Parameters parameters) {
    runtime::LogQuery query;
    query.tail = parameters.tail + 1;
    if (parameters.since) query.since = now() - *parameters.since;
    auto text = co_await lifecycle.logs(std::move(id), query);
    if (!text) co_return text.error();
    co_return diagnostics::last_lines(*text, static_cast<std::size_t>(parameters.tail));
}

Cut read_events(lifecycle::Lifecycle& lifecycle, const std::string& id,
                const runtime::Inspection& inspection, std::size_t limit) {
    auto lines = diagnostics::event_lines(inspection, lifecycle.events(id));
    return diagnostics::first_lines(lines, limit);
}

Awaitable<http::Response> show_logs(lifecycle::Lifecycle& lifecycle, std::string id,
                                    Parameters parameters) {
    if (!parameters.scope) {
        auto logs = co_await read_logs(lifecycle, std::move(id), std::move(parameters));
        if (!logs) co_return error_response(logs.error());
        co_return text_form(logs->text.empty() ? std::string(kNoLogs) : logs->text, true);
    }
    Parameters fixed;
    fixed.tail = kShownLines;
    auto logs = co_await read_logs(lifecycle, id, fixed);
    if (!logs) co_return error_response(logs.error());
    co_return json_form(kLogs, id, *parameters.scope, *logs);
}

Awaitable<http::Response> show_events(lifecycle::Lifecycle& lifecycle, std::string id,
                                      Parameters parameters) {
    auto inspection = co_await lifecycle.inspect(id);
    if (!inspection) co_return error_response(inspection.error());
    std::size_t limit =
        parameters.scope ? kShownEvents : static_cast<std::size_t>(parameters.event_limit);
    Cut events = read_events(lifecycle, id, *inspection, limit);
    if (!parameters.scope) co_return text_form(std::move(events.text), true);
    co_return json_form(kEvents, id, *parameters.scope, events);
}

Awaitable<http::Response> show_inspect(lifecycle::Lifecycle& lifecycle, std::string id) {
    auto inspection = co_await lifecycle.inspect(std::move(id));
    if (!inspection) co_return error_response(inspection.error());
    co_return text_form(diagnostics::inspect_text(*inspection), false);
}

/// A part that cannot be read says why and does not cost the others.
Awaitable<http::Response> show_summary(lifecycle::Lifecycle& lifecycle, std::string id,
                                       Parameters parameters) {
    auto inspection = co_await lifecycle.inspect(id);
    if (!inspection && inspection.error().code() == ErrorCode::not_found) {
        co_return error_response(inspection.error());
    }
    auto logs = co_await read_logs(lifecycle, id, parameters);
    std::string unreadable = inspection ? "" : "(unreadable: " + inspection.error().message() + ")";
    std::string inspect = unreadable;
    std::string events = unreadable;
    if (inspection) {
        inspect = diagnostics::inspect_text(*inspection);
        auto limit = static_cast<std::size_t>(parameters.event_limit);
        events = read_events(lifecycle, id, *inspection, limit).text;
    }
    std::string output(kNoLogs);
    if (!logs) {
        output = "(unreadable: " + logs.error().message() + ")";
    } else if (!logs->text.empty()) {
        output = std::move(logs->text);
    }
    co_return text_form(diagnostics::summary_text(id, inspect, events, output, parameters.tail),
                        false);
}

Awaitable<http::Response> answer(lifecycle::Lifecycle& lifecycle, Page page, std::string id,
                                 Parameters parameters) {
    auto known = lifecycle.get(id);
    if (!known) co_return error_response(known.error());
    switch (page) {
        case Page::logs: {
            co_return co_await show_logs(lifecycle, std::move(id), std::move(parameters));
        }
        case Page::events: {
            co_return co_await show_events(lifecycle, std::move(id), std::move(parameters));
        }
        case Page::inspect: co_return co_await show_inspect(lifecycle, std::move(id));
        case Page::summary: break;
    }
    co_return co_await show_summary(lifecycle, std::move(id), std::move(parameters));
}

Awaitable<void> serve_page(lifecycle::Lifecycle& lifecycle, http::Exchange& exchange, Page page) {
    std::string id = sandbox_id_of(exchange);
    auto parsed = diagnostics::parse_parameters(page, exchange.request().query());
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        auto refusal = validation_response(*errors);
        co_return co_await exchange.respond(std::move(refusal));
    }
    auto& parameters = std::get<Parameters>(parsed);
    if (parameters.scope) {
        auto refused = refuse_scope(page == Page::logs ? kLogs : kEvents, *parameters.scope);
        if (refused) {
            auto refusal = error_response(*refused);
            co_return co_await exchange.respond(std::move(refusal));
        }
    }
    auto response = co_await answer(lifecycle, page, std::move(id), std::move(parameters));
    co_await exchange.respond(std::move(response));
}

}  // namespace

void add_diagnostics_routes(http::Router& router, lifecycle::Lifecycle& lifecycle, Mount mount) {
    lifecycle::Lifecycle* l = &lifecycle;
    std::string base = std::string(mount) + "/sandboxes/{sandbox_id}/diagnostics/";
    auto add = [&](std::string_view name, Page page) {
        router.add("GET", base + std::string(name),
                   [l, page](http::Exchange& x) { return serve_page(*l, x, page); });
    };
    add("logs", Page::logs);
    add("events", Page::events);
    add("inspect", Page::inspect);
    add("summary", Page::summary);
}

}  // namespace opensandbox::server
