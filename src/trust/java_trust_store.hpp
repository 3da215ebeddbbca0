#pragma once

#include "base/error.hpp"
#include "net/openssl_handles.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace opensandbox::trust {

/// A PKCS#12 store that Java takes for trusted roots: every certificate carries the attribute
/// (2.16.840.1.113894.746875.1.1) without which the JDK ignores it. Nothing in it is secret.
Result<std::string> make_java_trust_store(const std::vector<net::CertificateHandle>& roots,
                                          const std::string& password);

/// Whether a keystore of Java's holds this certificate. They stand in it as they are (JKS, PKCS#12
/// without encryption); false for a store that hides them.
bool java_store_holds(std::string_view store, const net::CertificateHandle& certificate);

/// A JKS store with one more trusted certificate. `unsupported` for another kind of store, or one
/// that this password does not seal.
Result<std::string> add_to_java_store(std::string_view store,
                                      const net::CertificateHandle& certificate,
                                      std::string_view alias, std::string_view password,
                                      std::chrono::system_clock::time_point now);

}  // namespace opensandbox::trust
