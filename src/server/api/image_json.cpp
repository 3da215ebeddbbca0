#include "model/json_text.hpp"
#include "server/api/images.hpp"

namespace opensandbox::server {

Error image_error(const Error& error) {
    if (!error.wire().empty()) return error;
    switch (error.code()) {
        case ErrorCode::not_found: return error.as("IMAGE::NOT_FOUND");
        case ErrorCode::conflict: return error.as("IMAGE::CONFLICT");
        case ErrorCode::too_large: return error.as("IMAGE::TOO_LARGE");
        case ErrorCode::invalid_argument:
        case ErrorCode::protocol: return error.as("IMAGE::INVALID");
        default: return error.as("IMAGE::FAILED");
    }
}

std::string image_json(const image::ImageInfo& info) {
    return "{\"reference\":" + model::json_string(info.reference) +
           ",\"digest\":" + model::json_string(info.digest) +
           ",\"size\":" + std::to_string(info.size) + ",\"createdAt\":\"" +
           to_rfc3339(info.created_at) + "\",\"builtIn\":" + (info.built_in ? "true" : "false") +
           "}";
}

}  // namespace opensandbox::server
