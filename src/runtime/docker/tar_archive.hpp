#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::runtime::docker {

/// Builds a tar archive (ustar) in memory. Owners are root, times the epoch. Names have at most 99
/// bytes, files less than 8 GiB.
class TarArchive {
  public:
    void add_file(std::string_view name, std::string_view content, std::uint32_t mode);
    void add_directory(std::string_view name, std::uint32_t mode);
    void add_link(std::string_view name, std::string_view target);
    /// The archive with its end; this is empty afterwards.
    std::string finish();

  private:
    void add_header(std::string_view name, std::uint64_t size, std::uint32_t mode, char type,
                    std::string_view target);
    std::string bytes_;
};

}  // namespace opensandbox::runtime::docker
