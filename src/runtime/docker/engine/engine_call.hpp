#pragma once

#include "http/message.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opensandbox::runtime::docker {

/// One request to the engine.
struct EngineCall {
    /// Adds a query parameter; the value is encoded.
    EngineCall& with(std::string_view name, std::string_view value);
    /// "POST /containers/x/start", for messages.
    [[nodiscard]] std::string shown() const { return method + " " + path; }

    std::string method;
    std::string path;   ///< encoded, without the version: "/containers/json"
    std::string query;  ///< encoded, "" or "?a=b&c=d"
    bool versioned = true;
    std::string content_type;  ///< of the body, empty without one
    std::string content;
    http::BodyReader* stream = nullptr;  ///< instead of content; borrowed until the call returns
    http::Fields fields;
    std::chrono::milliseconds limit{0};  ///< on the whole call; 0: call_timeout
    std::vector<int> accepted;           ///< statuses of 300 and more that are no failure
};

/// A name as one segment of a path: it cannot reach another.
std::string path_part(std::string_view text);
/// An image reference as it stands in a path, its slashes kept.
std::string image_part(std::string_view reference);

/// The JSON of `filters`: every name with its list of values, empty lists left out.
std::string filters_json(
    const std::vector<std::pair<std::string, const std::vector<std::string>*>>& filters);

}  // namespace opensandbox::runtime::docker
