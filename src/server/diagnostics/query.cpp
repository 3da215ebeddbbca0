#include "http/message.hpp"
#include "server/diagnostics/pages.hpp"
#include "server/query_number.hpp"

#include <cctype>
#include <charconv>

namespace opensandbox::server::diagnostics {
namespace {

constexpr std::int64_t kMaxTail = 10000;
constexpr std::int64_t kMaxEvents = 500;
constexpr std::int64_t kSummaryTail = 50;
constexpr std::int64_t kSummaryEvents = 20;
constexpr std::chrono::minutes kDefaultSince{10};

std::string plain(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n\f\v";
    auto from = text.find_first_not_of(kBlanks);
    if (from == std::string_view::npos) return {};
    text = text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
    std::string lower;
    for (char c : text)
        lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return lower;
}

}  // namespace

std::chrono::seconds parse_since(std::string_view text) {
    std::string given = plain(text);
    if (given.size() < 2) return kDefaultSince;
    std::int64_t unit = 0;
    switch (given.back()) {
        case 's': unit = 1; break;
        case 'm': unit = 60; break;
        case 'h': unit = 3600; break;
        case 'd': unit = 86400; break;
        default: return kDefaultSince;
    }
    std::int64_t count = 0;
    const char* end = given.data() + given.size() - 1;
    auto [stop, problem] = std::from_chars(given.data(), end, count);
    constexpr std::int64_t kLongest = 86400LL * 36500;
    if (problem != std::errc() || stop != end || count < 0) return kDefaultSince;
    return std::chrono::seconds(count > kLongest / unit ? kLongest : count * unit);
}

std::variant<Parameters, model::FieldErrors> parse_parameters(Page page, std::string_view raw) {
    http::Query query(raw);
    Parameters parameters;
    model::FieldErrors errors;
    bool summary = page == Page::summary;
    if (summary) parameters.tail = kSummaryTail;
    if (summary) parameters.event_limit = kSummaryEvents;
    if (page == Page::logs || summary) {
        read_number(query, "tail", kMaxTail, parameters.tail, errors);
    }
    if (page == Page::events) {
        read_number(query, "limit", kMaxEvents, parameters.event_limit, errors);
    }
    if (summary) {
        read_number(query, "event_limit", kMaxEvents, parameters.event_limit, errors);
    }
    if (!errors.empty()) return errors;
    if (page == Page::logs) {
        if (auto since = query.get("since")) parameters.since = parse_since(*since);
    }
    if (page == Page::logs || page == Page::events) {
        if (auto scope = query.get("scope")) parameters.scope = plain(*scope);
    }
    return parameters;
}

}  // namespace opensandbox::server::diagnostics
