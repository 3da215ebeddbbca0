#pragma once

#include "json/fields.hpp"

namespace opensandbox::sdk::fields {

/// Its origin is a field of the answer's head.
inline constexpr auto kEndpointMembers = [](auto& walker, auto& endpoint) {
    walker.put(json::Field("endpoint").help("host:port, perhaps with a path, without a scheme"),
               endpoint.endpoint);
    walker.put(json::Field("headers").help("Fields that every request must carry"),
               endpoint.headers);
    walker.put(json::Field("origin").without(json::kRead), endpoint.origin);
};

}  // namespace opensandbox::sdk::fields
