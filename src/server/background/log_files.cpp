#include "server/background/log_files.hpp"

#include <cstdlib>

namespace opensandbox::server {
namespace {

/// What App writes for every request.
constexpr std::string_view kRequestMessage = "request";

std::filesystem::path usual_file() {
    const char* home = std::getenv("HOME");
    return std::filesystem::path(home ? home : "") / "logs" / "opensandbox" / "server.log";
}

}  // namespace

LogFiles::LogFiles(std::unique_ptr<log::RotatingFile> server,
                   std::unique_ptr<log::RotatingFile> access)
    : server_(std::move(server)), access_(std::move(access)) {
    log::attach(this);
}

LogFiles::~LogFiles() {
    log::attach(nullptr);
}

Result<std::unique_ptr<LogFiles>> LogFiles::open(const LogFileConfig& config) {
    if (!config.enabled) return std::unique_ptr<LogFiles>();
    auto path = config.path.empty() ? usual_file() : config.path;
    auto access_path =
        config.access_path.empty() ? path.parent_path() / "access.log" : config.access_path;
    auto server = log::RotatingFile::open(path, config.max_bytes, config.backup_count);
    if (!server) return server.error().within("log.file_path");
    auto access = log::RotatingFile::open(access_path, config.max_bytes, config.backup_count);
    if (!access) return access.error().within("log.access_file_path");
    return std::unique_ptr<LogFiles>(
        new LogFiles(std::move(server.value()), std::move(access.value())));
}

void LogFiles::write(std::string_view message, std::string_view line) {
    (message == kRequestMessage ? *access_ : *server_).append(line);
}

}  // namespace opensandbox::server
