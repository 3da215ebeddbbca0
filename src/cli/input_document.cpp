#include "cli/input_document.hpp"

#include "json/yaml.hpp"
#include "sdk/stdio/standard_streams.hpp"
#include "sdk/transport.hpp"

namespace opensandbox::cli {

namespace {

constexpr std::size_t kMost = 1024 * 1024;
constexpr std::size_t kPiece = 64 * 1024;

Awaitable<sdk::Result<std::string>> read_whole(sdk::ByteReader& reader) {
    std::string text;
    for (;;) {
        const std::size_t before = text.size();
        text.resize(before + kPiece);
        auto count = co_await reader.read_some(std::span<char>(text.data() + before, kPiece));
        text.resize(before + (count ? *count : 0));
        if (!count) co_return count.error();
        if (*count == 0) co_return text;
        if (text.size() > kMost) {
            co_return sdk::Error(sdk::ErrorCode::too_large, "has more than 1 MiB");
        }
    }
}

/// JSON has escapes and tabs that YAML has not.
sdk::Result<json::value> parse_either(std::string_view text) {
    if (auto document = json::parse(text)) return std::move(*document);
    auto document = json::parse_yaml(text);
    if (!document) return sdk::to_public(document.error());
    return std::move(*document);
}

}  // namespace

Awaitable<sdk::Result<json::object>> read_input_object(Invocation& invocation, std::string option) {
    const std::string path = invocation.arguments().get(option).value_or("");
    const std::string what = option + " " + (path == "-" ? "(standard input)" : path);
    auto source =
        path == "-" ? sdk::open_standard_input(invocation.executor()) : sdk::read_file(path);
    if (!source) co_return source.error().within(option);
    auto text = co_await read_whole(**source);
    if (!text) co_return text.error().within(what);
    auto document = parse_either(*text);
    if (!document) co_return document.error().within(what);
    if (!document->is_object()) {
        co_return sdk::Error(sdk::ErrorCode::invalid_argument,
                             what + ": must be a JSON or YAML object");
    }
    co_return std::move(document->get_object());
}

}  // namespace opensandbox::cli
