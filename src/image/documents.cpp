#include "base/digest.hpp"
#include "image/staging.hpp"
#include "image/store_state.hpp"
#include "json/document.hpp"

#include <vector>

namespace opensandbox::image {
namespace fs = std::filesystem;

fs::path DocumentFiles::file(const std::string& digest) const {
    std::string_view hex = digest_hex(digest);
    return hex.empty() ? fs::path() : directory_ / (std::string(hex) + ".json");
}

Result<std::optional<ImageDocuments>> DocumentFiles::read(const std::string& digest) const {
    std::optional<ImageDocuments> none;
    fs::path from = file(digest);
    if (from.empty()) return none;
    auto text = read_file(from);
    if (!text && text.error().code() == ErrorCode::not_found) return none;
    if (!text) return text.error();
    auto document = json::parse(*text);
    if (!document) return document.error().within(from.string());
    ImageDocuments documents;
    try {
        const json::object& object = document->as_object();
        documents.media_type = object.at("media_type").as_string();
        documents.manifest = object.at("manifest").as_string();
        documents.config = object.at("config").as_string();
        documents.source = object.at("source").as_string();
    } catch (const std::exception& error) {
        return Error(ErrorCode::internal,
                     from.string() + ": not a file of this program: " + error.what());
    }
    return std::optional(std::move(documents));
}

bool DocumentFiles::has(const std::string& digest) const {
    const fs::path at = file(digest);
    std::error_code ignored;
    return !at.empty() && fs::exists(at, ignored);
}

Status DocumentFiles::write(const std::string& digest, const ImageDocuments& documents) const {
    fs::path to = file(digest);
    if (to.empty()) return {};
    json::object object;
    object["media_type"] = documents.media_type;
    object["manifest"] = documents.manifest;
    object["config"] = documents.config;
    object["source"] = documents.source;
    return write_file_atomically(to, json::serialize(object));
}

Status DocumentFiles::keep_only(const std::set<std::string>& digests) const {
    std::set<std::string> kept;
    for (const std::string& digest : digests)
        kept.insert(file(digest).filename().string());
    std::error_code ec;
    std::vector<fs::path> stray;
    for (fs::directory_iterator it(directory_, ec), end; !ec && it != end; it.increment(ec)) {
        if (!kept.contains(it->path().filename().string())) stray.push_back(it->path());
    }
    if (ec) return Error::from_errno(ec.value(), "list " + directory_.string());
    for (const fs::path& path : stray) {
        fs::remove(path, ec);
        if (ec) return Error::from_errno(ec.value(), "remove " + path.string());
    }
    return {};
}

}  // namespace opensandbox::image
