#pragma once

#include "egress/dns/settings.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace opensandbox::egress::dns {

/// Why a query of this type is refused whatever the name, if it is.
std::optional<std::string> refused_type(std::uint16_t type, const std::set<std::uint16_t>& allowed);

/// The last labels of a name that look like what somebody registered: two, or three below such as
/// co.uk. Names are as Gate gets them.
std::string_view registered_part(std::string_view name);

/// Which limit the form of a name passes, if any; NameLimits::distinct is not looked at.
std::optional<std::string> passed_limit(std::string_view name, const NameLimits& limits);

}  // namespace opensandbox::egress::dns
