#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::imagebuild {

/// What an image says about how it is run.
struct ImageSettings {
    std::map<std::string, std::string, std::less<>> environment;
    std::string user;
    std::string working_directory;
    std::vector<std::string> entrypoint;
    std::vector<std::string> cmd;
    std::map<std::string, std::string> labels;
    std::vector<std::string> exposed_ports;  ///< "80/tcp", sorted

    bool operator==(const ImageSettings&) const = default;
};

}  // namespace opensandbox::imagebuild
