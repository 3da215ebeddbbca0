#include "sdk/fields/file.hpp"

#include "sdk/fields/file_mode.hpp"

namespace opensandbox::sdk::fields {

opensandbox::Result<std::optional<FileType>> FileTypeForm::read(const json::object& from,
                                                                std::string_view name) {
    auto found = json::get_string(from, name);
    if (!found) return found.error();
    if (!*found) return std::optional<FileType>();
    for (FileType type : {FileType::file, FileType::directory, FileType::symlink})
        if (**found == to_string(type)) return std::optional<FileType>(type);
    return std::optional<FileType>(FileType::other);
}

opensandbox::Result<std::optional<std::uint32_t>> FileModeForm::read(const json::object& from,
                                                                     std::string_view name) {
    auto digits = json::get_integer(from, name);
    if (!digits) return digits.error();
    if (!*digits) return std::optional<std::uint32_t>();
    auto mode = wire::mode_from_wire(**digits);
    if (mode) return mode;
    return opensandbox::Error(opensandbox::ErrorCode::invalid_argument,
                              std::string(name) + ": must have octal digits");
}

json::value FileModeForm::write(std::uint32_t mode) {
    return json::value(wire::mode_to_wire(mode));
}

}  // namespace opensandbox::sdk::fields
