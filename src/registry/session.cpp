#include "registry/session.hpp"

#include "base/identifier.hpp"
#include "image/budget.hpp"
#include "json/document.hpp"
#include "net/task.hpp"
#include "version.hpp"

#include <algorithm>
#include <charconv>

namespace opensandbox::registry {
namespace {

constexpr int kMostRedirects = 5;
constexpr std::size_t kLargestRefusal = std::size_t{64} << 10;
constexpr std::chrono::seconds kRenewBefore{30};

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool is_busy(int status) {
    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

/// Retry-After in seconds; a date is not worth its parser.
std::optional<std::chrono::milliseconds> retry_after(const http::ResponseHead& head) {
    auto text = head.fields.get("Retry-After");
    if (!text) return std::nullopt;
    std::uint32_t seconds = 0;
    auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), seconds);
    if (failure != std::errc() || end != text->data() + text->size()) return std::nullopt;
    return std::chrono::seconds(std::min<std::uint32_t>(seconds, 86'400));
}

ErrorCode code_of(int status) {
    switch (status) {
        case 401: return ErrorCode::unauthenticated;
        case 403: return ErrorCode::permission_denied;
        case 404: return ErrorCode::not_found;
        case 429: return ErrorCode::resource_exhausted;
        default: return ErrorCode::bad_gateway;
    }
}

}  // namespace

Error unwanted_transfer() {
    return {ErrorCode::cancelled, "nobody waits for it any more"};
}

bool may_pass(const Error& error) {
    switch (error.code()) {
        case ErrorCode::unavailable:
        case ErrorCode::bad_gateway:
        case ErrorCode::timeout:
        case ErrorCode::protocol:
        case ErrorCode::io: return true;
        default: return false;
    }
}

std::string reason_in(std::string_view body) {
    auto document = json::parse(body);
    if (!document || !document->is_object()) return {};
    const json::value* errors = json::find(document->get_object(), "errors");
    std::string reason;
    if (errors && errors->is_array()) {
        for (const json::value& entry : errors->get_array()) {
            if (!entry.is_object() || reason.size() > 400) continue;
            auto message = json::get_string(entry.get_object(), "message");
            if (!message || !*message || (*message)->empty()) {
                message = json::get_string(entry.get_object(), "code");
            }
            if (!message || !*message) continue;
            std::string shown = image::in_quotes(**message);
            reason += (reason.empty() ? "" : ", ") + shown.substr(1, shown.size() - 2);
        }
    }
    return reason;
}

Awaitable<Result<std::size_t>> read_piece(Session& session, http::ClientResponse& response,
                                          std::span<char> into) {
    net::Deadline deadline(session.executor(), session.options().stall_timeout,
                           [&response] { response.abort(); });
    const auto abort = [&response] { response.abort(); };
    std::stop_callback unwanted(session.stop(), abort);
    if (session.stop().stop_requested()) co_return unwanted_transfer();
    auto count = co_await response.body().read_some(into);
    if (session.stop().stop_requested()) co_return unwanted_transfer();
    if (deadline.expired()) co_return Error(ErrorCode::timeout, "the registry sends nothing more");
    co_return count;
}

Awaitable<Result<std::string>> read_document(Session& session, http::ClientResponse& response,
                                             std::size_t limit) {
    std::string body;
    std::string piece(std::size_t{64} << 10, '\0');
    while (true) {
        auto count = co_await read_piece(session, response, piece);
        if (!count) co_return count.error();
        if (*count == 0) co_return body;
        body.append(piece, 0, *count);
        if (body.size() > limit) {
            co_return Error(ErrorCode::too_large,
                            "the answer is larger than " + std::to_string(limit) + " bytes");
        }
    }
}

Session::Session(std::shared_ptr<Wire> wire, Location location, Credential credential,
                 std::string scope, std::stop_token stop)
    : wire_(std::move(wire)),
      location_(std::move(location)),
      credential_(std::move(credential)),
      scope_(std::move(scope)),
      stop_(std::move(stop)) {}

Awaitable<void> Session::rest(std::chrono::milliseconds duration) {
    net::Event woken(executor());
    const auto wake = [&woken] { woken.notify(); };
    std::stop_callback unwanted(stop_, wake);
    co_await woken.wait_for(duration);
}

Awaitable<Answer> Session::ask(http::Origin origin, http::ClientRequest request) {
    http::AbortHandle handle;
    request.abort = &handle;
    const auto abort = [&handle] { handle.abort(); };
    std::stop_callback unwanted(stop_, abort);
    auto answer = co_await wire_->client().send(std::move(origin), std::move(request));
    if (stop_.stop_requested()) co_return unwanted_transfer();
    co_return answer;
}

std::string Session::path(std::string_view rest) const {
    return "/v2/" + location_.repository + "/" + std::string(rest);
}

std::chrono::milliseconds Session::delay(int attempt) const {
    auto delay = options().first_delay;
    for (int i = 2; i < attempt && delay < options().longest_delay; ++i)
        delay *= 2;
    delay = std::min(delay, options().longest_delay);
    std::uint16_t chance = 0;
    random_bytes(&chance, sizeof chance);
    return delay + delay * chance / (4 * 65536);
}

bool Session::token_is_old() const {
    return expires_ && std::chrono::steady_clock::now() > *expires_ - kRenewBefore;
}

/// On this machine a registry may do without TLS; which of both it speaks shows when it is asked.
Awaitable<Status> Session::choose_scheme() {
    Target target;
    target.target = "/v2/";
    bool plain = wire_->is_plain(location_);
    target.origin = wire_->origin(location_, !plain);
    if (!plain && location_.loopback) {
        http::ClientRequest question("GET", "/v2/");
        auto secured = co_await ask(target.origin, std::move(question));
        if (!secured && secured.error().code() == ErrorCode::unavailable) {
            http::Origin bare = wire_->origin(location_, false);
            http::ClientRequest again("GET", "/v2/");
            auto answer = co_await ask(bare, std::move(again));
            int status = answer ? (*answer)->head().status : 0;
            // A TLS server has no such answer for what is none.
            if (status != 200 && status != 401) co_return secured.error();
            target.origin = std::move(bare);
        } else if (!secured) {
            co_return secured.error();
        }
    }
    base_ = std::move(target);
    co_return Status();
}

Awaitable<Error> Session::refusal_of(http::ClientResponse& response) {
    int status = response.head().status;
    auto body = co_await read_document(*this, response, kLargestRefusal);
    std::string reason = body ? reason_in(*body) : std::string();
    std::string message = "status " + std::to_string(status);
    if (status == 401 || status == 403) {
        message = credential_.is_anonymous() ? "access is denied without a login"
                                             : "this user and password do not open it";
    }
    if (!reason.empty()) message += ": " + reason;
    co_return Error(code_of(status), std::move(message));
}

Awaitable<Answer> Session::attempt_at(std::shared_ptr<const Call> call, Target target) {
    for (int redirects = 0;; ++redirects) {
        http::ClientRequest request(call->method, target.target, call->fields);
        request.content = call->content;
        request.stream = call->stream;
        request.head.fields.set("User-Agent", std::string("opensandbox/") + std::string(kVersion));
        bool ours = target.same_origin(*base_);
        if (ours && !authorization_.empty()) {
            request.head.fields.set("Authorization", authorization_);
        }
        auto response = co_await ask(target.origin, std::move(request));
        if (!response) co_return response.error();
        bool follow = (call->method == "GET" || call->method == "HEAD") &&
                      is_redirect((*response)->head().status);
        if (!follow) co_return response;
        auto to = (*response)->head().fields.get("Location");
        if (!to || redirects == kMostRedirects) {
            co_return Error(ErrorCode::bad_gateway, "the registry redirects without an end");
        }
        auto next = wire_->resolve(*to, target);
        if (!next) co_return next.error();
        target = std::move(*next);
    }
}

/// One try with logging in, if that is asked for.
Awaitable<Answer> Session::attempt(std::shared_ptr<const Call> call) {
    if (!base_) {
        auto chosen = co_await choose_scheme();
        if (!chosen) co_return chosen.error();
    }
    if (token_is_old() && challenge_) {
        auto renewed = co_await fetch_token(*challenge_);
        if (!renewed) co_return renewed.error();
    }
    auto target = wire_->resolve(call->url, *base_);
    if (!target) co_return target.error();
    std::string used = authorization_;
    auto response = co_await attempt_at(call, *target);
    if (!response) co_return response;
    answered_ = true;
    if ((*response)->head().status != 401) co_return response;
    // Another call may have logged in meanwhile.
    if (used == authorization_) {
        if (used.starts_with("Basic ")) co_return response;
        http::ResponseHead head = (*response)->head();
        response->reset();
        auto in = co_await log_in(std::move(head));
        if (!in) co_return in.error();
    }
    if (call->stream != nullptr) {
        co_return Error(ErrorCode::unavailable, "the login was renewed");  // to be tried again
    }
    co_return co_await attempt_at(std::move(call), std::move(*target));
}

Awaitable<Answer> Session::send(Call wanted) {
    const auto call = std::make_shared<const Call>(std::move(wanted));
    for (int number = 1;; ++number) {
        auto response = co_await attempt(call);
        bool last = call->stream != nullptr || number >= options().attempts;
        if (!response) {
            // A registry that was never reached will hardly be in half a second.
            bool known = answered_ || response.error().code() != ErrorCode::unavailable;
            if (last || !known || !may_pass(response.error())) co_return response;
            co_await rest(delay(number + 1));
            continue;
        }
        int status = (*response)->head().status;
        if (status < 400) co_return response;
        auto asked = retry_after((*response)->head());
        auto wait = asked.value_or(delay(number + 1));
        if (!is_busy(status) || last || wait > options().longest_delay) {
            co_return co_await refusal_of(**response);
        }
        response->reset();
        co_await rest(wait);
    }
}

Awaitable<Result<Session::Document>> Session::fetch(Call call, std::size_t limit) {
    for (int number = 1;; ++number) {
        auto response = co_await send(call);
        if (!response) co_return response.error();
        Document document;
        document.head = (*response)->head();
        auto body = co_await read_document(*this, **response, limit);
        if (body) {
            document.body = std::move(*body);
            co_return document;
        }
        if (number >= options().attempts || !may_pass(body.error())) {
            co_return body.error();
        }
        co_await rest(delay(number + 1));
    }
}

}  // namespace opensandbox::registry
