#pragma once

#include "base/log.hpp"
#include "base/log_file.hpp"
#include "server/config/config.hpp"

#include <memory>

namespace opensandbox::server {

/// The files of [log]: every line goes to standard error and, while this lives, to one of two
/// files, requests to one, everything else to the other.
class LogFiles final : public log::Writer {
  public:
    /// Null when they are not enabled.
    static Result<std::unique_ptr<LogFiles>> open(const LogFileConfig& config);
    ~LogFiles() override;
    LogFiles(const LogFiles&) = delete;
    LogFiles& operator=(const LogFiles&) = delete;

    void write(std::string_view message, std::string_view line) override;

  private:
    LogFiles(std::unique_ptr<log::RotatingFile> server, std::unique_ptr<log::RotatingFile> access);
    std::unique_ptr<log::RotatingFile> server_;
    std::unique_ptr<log::RotatingFile> access_;
};

}  // namespace opensandbox::server
