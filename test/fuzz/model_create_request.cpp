#include "json/document.hpp"
#include "model/create_request.hpp"
#include "model/metadata.hpp"
#include "model/sandbox.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

/// Any body gives a request or errors that are valid JSON; so do the other bodies of the API.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace opensandbox;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    auto parsed = model::parse_create_request(text);
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        if (errors->empty() || !json::parse(model::to_json(*errors))) std::abort();
    } else {
        const auto& request = std::get<model::CreateRequest>(parsed);
        if (!request.template_id && request.image.has_value() == request.snapshot_id.has_value() &&
            request.extensions.empty()) {
            std::abort();
        }
    }
    auto patch = model::parse_metadata_patch(text);
    if (const auto* changes = std::get_if<model::MetadataPatch>(&patch))
        (void)model::apply(*changes, {});
    (void)model::parse_renew_request(text);
    (void)model::shell_split(text);
    return 0;
}
