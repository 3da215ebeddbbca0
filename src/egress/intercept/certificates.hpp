#pragma once

#include "egress/intercept/openssl_handles.hpp"

#include <string_view>
#include <vector>

namespace opensandbox::egress {

/// The certificates of a PEM text, in order; what is none is passed over.
std::vector<CertificateHandle> read_certificates(std::string_view pem);

}  // namespace opensandbox::egress
