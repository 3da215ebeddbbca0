#pragma once

#include "egress/settings/draft.hpp"
#include "egress/settings/values.hpp"

#include <cstdint>
#include <string>
#include <type_traits>

/// How rows of the table take their values (Setting::read).
namespace opensandbox::egress::reading {

template <auto Member>
void text(SettingDraft& draft, const std::string& value) {
    draft.parsed.options.*Member = value;
}

template <auto Member>
void truth(SettingDraft& draft, const std::string& value) {
    draft.parsed.options.*Member = is_truthy(value);
}

/// From First to Last; anything else leaves the row's standard, with a warning.
template <auto Member, std::uint32_t First, std::uint32_t Last>
void number(SettingDraft& draft, const std::string& value) {
    auto& into = draft.parsed.options.*Member;
    if (const auto parsed = parse_number(value, First, Last)) {
        into = static_cast<std::remove_reference_t<decltype(into)>>(*parsed);
        return;
    }
    draft.warn("must be a number from " + std::to_string(First) + " to " + std::to_string(Last) +
               "; " + std::string(draft.setting->standard) + " is used");
}

/// A limit of the filter of DNS; false is refused.
bool limit(SettingDraft& draft, const std::string& value, std::uint32_t& into);
/// The same into one of its parts: settings.*Part.*Member.
template <auto Part, auto Member>
void limit_of(SettingDraft& draft, const std::string& value) {
    auto& into = draft.parsed.dns.*Part.*Member;
    std::uint32_t parsed = 0;
    if (limit(draft, value, parsed)) into = parsed;
}

void mode(SettingDraft& draft, const std::string& value);
void http_address(SettingDraft& draft, const std::string& value);
void profile(SettingDraft& draft, const std::string& value);

void nameserver_exempt(SettingDraft& draft, const std::string& value);
void dns_upstream(SettingDraft& draft, const std::string& value);
void dns_probe(SettingDraft& draft, const std::string& value);
void doh_blocklist(SettingDraft& draft, const std::string& value);

void denial(SettingDraft& draft, const std::string& value);
void query_types(SettingDraft& draft, const std::string& value);
void query_rate(SettingDraft& draft, const std::string& value);
void forward_rate(SettingDraft& draft, const std::string& value);
void mixed_case(SettingDraft& draft, const std::string& value);

void extra_ports(SettingDraft& draft, const std::string& value);
void ignored_hosts(SettingDraft& draft, const std::string& value);
void passed_hosts(SettingDraft& draft, const std::string& value);
void interception_mode(SettingDraft& draft, const std::string& value);
void script(SettingDraft& draft, const std::string& value);

void trusted_proxies(SettingDraft& draft, const std::string& value);
void proxy_socket(SettingDraft& draft, const std::string& value);

void log_level(SettingDraft& draft, const std::string& value);
void log_outputs(SettingDraft& draft, const std::string& value);
void deny_webhook(SettingDraft& draft, const std::string& value);
void extra_attributes(SettingDraft& draft, const std::string& value);

}  // namespace opensandbox::egress::reading
