#include "json/document.hpp"
#include "server/api/images.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace opensandbox;

void check(const std::variant<server::NamedImage, model::FieldErrors>& parsed) {
    if (const auto* errors = std::get_if<model::FieldErrors>(&parsed)) {
        if (errors->empty() || !json::parse(model::to_json(*errors))) std::abort();
    } else if (std::get<server::NamedImage>(parsed).reference.empty()) {
        std::abort();
    }
}

}  // namespace

/// Any body names an image to be made, or has errors that are valid JSON.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    check(server::parse_snapshot_image(text));
    check(server::parse_image_tag(text));
    return 0;
}
