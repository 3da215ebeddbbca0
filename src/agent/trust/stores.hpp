#pragma once

#include "agent/process/environment.hpp"

#include <string>
#include <vector>

namespace opensandbox::agent {

/// Puts a certificate (PEM) into the system's store as Debian and Alpine have it, in milliseconds
/// where their update-ca-certificates takes a second or two: its file in
/// /usr/local/share/ca-certificates, so that the tool finds it whenever it runs; a line in the
/// bundle /etc/ssl/certs/ca-certificates.crt; beside that the link that OpenSSL looks up by the
/// name's hash. False, and then some of it may be done, where the store is another one, cannot be
/// written, or has hooks that others depend on: that is for the tool. All paths are below `root`,
/// empty for the real ones. Blocks.
bool add_to_system_store(const std::string& root, const std::string& pem);

/// Of the JDKs' own stores, and of the one that is made here: nothing in a store is secret.
inline constexpr const char* kJavaStorePassword = "changeit";

/// The stores of trusted certificates of the JDKs that programs of this environment find, in
/// JAVA_HOME and by PATH: paths below `root`. A JDK without one is named by the path where it would
/// be. Blocks.
std::vector<std::string> java_stores(const std::string& root, const Environment& environment);

/// Whether all of them hold the certificate (PEM), which is put into those that do not, if they are
/// of a kind that allows it and can be written. Blocks.
bool add_to_java_stores(const std::vector<std::string>& stores, const std::string& pem);

}  // namespace opensandbox::agent
