#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace opensandbox::egress {

struct SettingDraft;

/// Who may say a setting for one sandbox: its request, by its env.
enum class InRequest : std::uint8_t {
    refused,
    taken,
    server,     ///< the server alone says it, for what another member of the request asks for
    host_wide,  ///< a sidecar takes it; a host, which has one value for all its sandboxes, ignores
                ///< it
    policy,     ///< a sidecar takes it; a host, which keeps the policies itself, refuses
};

/// Who may say a setting for all sandboxes: the server's configuration, in [egress.environment].
enum class InConfiguration : std::uint8_t {
    taken,
    sidecar,   ///< only where there are sidecars
    reserved,  ///< never: the server says it of each sandbox, or another key of [egress] is for it
};

/// Where help names a setting.
enum class SettingTopic : std::uint8_t {
    policy,
    api,
    names,
    tunnels,
    interception,
    vault,
    reports,
    foreign,  ///< nowhere: of other sidecars' settings, read to be refused or told of
};

/// A setting of egress control: a variable of the sidecar's environment (network contract 1.3).
struct Setting {
    std::string_view name;      ///< without setting::kPrefix, unless it begins with OPENSANDBOX_
    std::string_view standard;  ///< what counts while it is unset; "": nothing, or not told of
    std::string_view note;      ///< what help says of it
    SettingTopic topic;
    InRequest request;
    InConfiguration configuration;
    /// Takes a value, which is trimmed and not empty, into the options or the filter of DNS.
    void (*read)(SettingDraft& draft, const std::string& value);
    bool secret = false;  ///< not left in the process's environment once it was read

    [[nodiscard]] std::string variable() const;

    /// Whether a request's env may have it at all; where it goes to is the runtime's to say.
    [[nodiscard]] bool is_open_to_requests() const {
        return request != InRequest::refused && request != InRequest::server;
    }
    /// Whether a host has a value of it for each of its sandboxes.
    [[nodiscard]] bool is_of_a_sandbox() const {
        return request == InRequest::taken || request == InRequest::server;
    }
};

/// All there are, in the order in which they are read. The one list of them.
std::span<const Setting> settings();

/// The one of this variable; null for others'.
const Setting* find_setting(std::string_view variable);

}  // namespace opensandbox::egress
