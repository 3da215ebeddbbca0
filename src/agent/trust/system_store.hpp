#pragma once

#include <string>

namespace opensandbox::agent {

/// Puts a certificate (PEM) into the system's store as Debian and Alpine have it, in milliseconds
/// where their update-ca-certificates takes a second or two: its file in
/// /usr/local/share/ca-certificates, so that the tool finds it whenever it runs; a line in the
/// bundle /etc/ssl/certs/ca-certificates.crt; beside that the link that OpenSSL looks up by the
/// name's hash. False, and then some of it may be done, where the store is another one, cannot be
/// written, or has hooks that others depend on: that is for the tool. All paths are below `root`,
/// empty for the real ones. Blocks.
bool add_to_system_store(const std::string& root, const std::string& pem);

}  // namespace opensandbox::agent
