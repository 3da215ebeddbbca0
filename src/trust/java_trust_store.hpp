#pragma once

#include "base/error.hpp"
#include "net/openssl_handles.hpp"

#include <string>
#include <vector>

namespace opensandbox::trust {

/// A PKCS#12 store that Java takes for trusted roots: every certificate carries the attribute
/// (2.16.840.1.113894.746875.1.1) without which the JDK ignores it. Nothing in it is secret.
Result<std::string> make_java_trust_store(const std::vector<net::CertificateHandle>& roots,
                                          const std::string& password);

}  // namespace opensandbox::trust
