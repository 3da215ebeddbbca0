#pragma once

#include "egress/settings/environment.hpp"
#include "egress/settings/table.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

/// What was read so far: the warnings, and the first error.
struct SettingDraft {
    explicit SettingDraft(dns::ProxySettings filter) { parsed.dns = std::move(filter); }

    /// Of the setting that is read: its value is not taken as it stands.
    void warn(const std::string& what) {
        parsed.warnings.push_back(setting->variable() + ": " + what);
    }
    void fail(const std::string& what, ErrorCode code = ErrorCode::invalid_argument) {
        fail_of(setting->variable(), what, code);
    }
    void fail_of(std::string_view variable, const std::string& what,
                 ErrorCode code = ErrorCode::invalid_argument) {
        if (!error) error = Error(code, std::string(variable) + ": " + what);
    }
    /// The same, telling the value or a part of it.
    void refuse(const std::string& value, const std::string& what) {
        if (error) return;
        error =
            Error(ErrorCode::invalid_argument, setting->variable() + "=\"" + value + "\": " + what);
    }

    ParsedEnvironment parsed;
    std::optional<Error> error;
    const Setting* setting = nullptr;  ///< the one that is read
};

}  // namespace opensandbox::egress
