#pragma once

#include "base/error.hpp"
#include "egress/intercept/openssl_handles.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::egress {

/// The certificates of a PEM text, in order; what is none is passed over.
std::vector<CertificateHandle> read_certificates(std::string_view pem);

/// A PKCS#12 store that Java takes for trusted roots: every certificate carries the attribute
/// (2.16.840.1.113894.746875.1.1) without which the JDK ignores it. Nothing in it is secret.
Result<std::string> make_java_trust_store(const std::vector<CertificateHandle>& roots,
                                          const std::string& password);

/// Whether a keystore of Java's holds this certificate. They stand in it as they are (JKS, PKCS#12
/// without encryption); false for a store that hides them.
bool java_store_holds(std::string_view store, const CertificateHandle& certificate);

}  // namespace opensandbox::egress
