#pragma once

#include "base/error.hpp"
#include "net/tls.hpp"

#include <memory>
#include <string>

struct ssl_ctx_st;

namespace opensandbox::net {

struct TlsContextDeleter {
    void operator()(ssl_ctx_st* context) const;
};
using TlsContextHandle = std::unique_ptr<ssl_ctx_st, TlsContextDeleter>;

/// Reads the files and makes a client's context. `invalid_argument` names the file that is wrong.
Result<TlsContextHandle> make_tls_context(const TlsSettings& settings);

/// The first reason in OpenSSL's queue of errors of this thread, which is emptied.
std::string take_tls_reason();

}  // namespace opensandbox::net
