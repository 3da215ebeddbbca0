#pragma once

#include "base/error.hpp"
#include "model/field_error.hpp"
#include "model/json_text.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// User metadata of a sandbox: Kubernetes label rules (lifecycle 2.5).
namespace opensandbox::model {

/// Keys under it belong to the system.
inline constexpr std::string_view kReservedPrefix = "opensandbox.io/";

bool is_reserved_key(std::string_view key);
/// `[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?`, at most 63; the empty value is allowed.
bool is_label_value(std::string_view value);
/// A name of at most 63, optionally after `dns-subdomain/` of at most 253.
bool is_label_key(std::string_view key);

/// `invalid_argument` with `SANDBOX::INVALID_METADATA_LABEL`, naming the key and the rule.
Status check_label(std::string_view key, std::string_view value);
/// Every label, and none under the reserved prefix.
Status check_labels(const StringMap& metadata);

/// A metadata PATCH: null deletes, text sets (RFC 7396 for a flat object of strings).
using MetadataPatch = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// Reads the body of a PATCH; the errors name the fields that are not text or null.
std::variant<MetadataPatch, FieldErrors> parse_metadata_patch(std::string_view body);

/// Applies the patch. Only what it adds is checked; the reserved prefix is refused with the wire
/// code `INVALID_METADATA_LABEL` (without prefix: the contract's).
Result<StringMap> apply(const MetadataPatch& patch, const StringMap& metadata);

/// A list filter: every pair must be there, exactly.
bool matches(const StringMap& filter, const StringMap& metadata);

}  // namespace opensandbox::model
