#include "server/api/services.hpp"

namespace opensandbox::server {

lifecycle::Requester Services::requester(const http::Exchange& exchange) const {
    lifecycle::Requester requester;
    requester.tenant = exchange.tenant;
    requester.quota = tenants ? tenants->quota(exchange.tenant) : config.quota;
    return requester;
}

}  // namespace opensandbox::server
