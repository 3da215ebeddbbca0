#include "server/docs/documents.hpp"

namespace opensandbox::server {
namespace {

constexpr unsigned char kOpenApi[] = {
#include "server/docs/openapi.json.inc"
};

constexpr unsigned char kPage[] = {
#include "server/docs/page.html.inc"
};

template <std::size_t Size>
std::string_view text_of(const unsigned char (&bytes)[Size]) {
    return {reinterpret_cast<const char*>(bytes), Size};
}

}  // namespace

std::string_view openapi_document() {
    return text_of(kOpenApi);
}

std::string_view docs_page() {
    return text_of(kPage);
}

}  // namespace opensandbox::server
