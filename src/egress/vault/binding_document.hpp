#pragma once

#include "egress/vault/binding.hpp"
#include "egress/vault/document_reader.hpp"

#include <string>

namespace opensandbox::egress {

/// A binding as documents have it, with the contract's defaults filled in: https, its port, the
/// five usual methods, every path. Each part is checked by itself; how bindings fit with each
/// other, with the credentials and with the interceptor is binding_rules.hpp's. Errors go to the
/// reader.
Binding read_binding(DocumentReader& reader, const boost::json::value& value,
                     const std::string& place);

}  // namespace opensandbox::egress
