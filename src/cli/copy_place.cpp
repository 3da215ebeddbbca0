#include "cli/copy_place.hpp"

namespace opensandbox::cli {

std::optional<CopyPlace> parse_copy_place(std::string_view text) {
    CopyPlace place;
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0 ||
        text.substr(0, colon).find('/') != std::string_view::npos) {
        place.path = text;
    } else {
        place.sandbox = text.substr(0, colon);
        place.path = text.substr(colon + 1);
    }
    if (place.path.empty()) return std::nullopt;
    return place;
}

std::optional<std::string> path_below(std::string_view directory, std::string_view path) {
    while (directory.size() > 1 && directory.ends_with('/'))
        directory.remove_suffix(1);
    if (!path.starts_with(directory)) return std::nullopt;
    path.remove_prefix(directory.size());
    if (directory != "/" && !path.starts_with('/')) return std::nullopt;
    while (path.starts_with('/'))
        path.remove_prefix(1);
    if (path.empty()) return std::nullopt;
    std::string_view rest = path;
    while (!rest.empty()) {
        const auto end = rest.find('/');
        const std::string_view part = rest.substr(0, end);
        if (part.empty() || part == "." || part == ".." ||
            part.find('\0') != std::string_view::npos)
            return std::nullopt;
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    return std::string(path);
}

std::string last_part(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/'))
        path.remove_suffix(1);
    return std::string(path.substr(path.find_last_of('/') + 1));
}

}  // namespace opensandbox::cli
