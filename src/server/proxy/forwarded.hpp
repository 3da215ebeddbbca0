#pragma once

#include "http/fields.hpp"
#include "net/address_block.hpp"

#include <string>
#include <string_view>
#include <vector>

/// What proxies in front of the server say of a request (lifecycle 3.3). Pure.
namespace opensandbox::server {

/// How a request set out, as far as it is known.
struct Origination {
    std::string host;             ///< the Host that the client named
    std::string client;           ///< its address
    std::string scheme = "http";  ///< "http" or "https"
    bool authorized = false;      ///< it carries this server's API key
};

/// `peer` is who is at the other end of the connection. Its own word counts, unless it is one of
/// `trusted`: then the client is the last entry of X-Forwarded-For that no trusted proxy is, and
/// scheme and host are what the last entries of X-Forwarded-Proto and X-Forwarded-Host say. An
/// entry that cannot be read counts as not sent, with all before it. Never fails.
Origination origination_of(const http::Fields& fields, std::string_view peer,
                           const std::vector<net::AddressBlock>& trusted);

}  // namespace opensandbox::server
