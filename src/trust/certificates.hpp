#pragma once

#include "net/openssl_handles.hpp"

#include <string_view>
#include <vector>

namespace opensandbox::trust {

/// The certificates of a PEM text, in order; what is none is passed over.
std::vector<net::CertificateHandle> read_certificates(std::string_view pem);

}  // namespace opensandbox::trust
