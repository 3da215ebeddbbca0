#pragma once

#include "agent/process/environment.hpp"

#include <string>
#include <vector>

namespace opensandbox::agent {

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
