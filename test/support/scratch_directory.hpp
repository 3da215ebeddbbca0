#pragma once

#include "base/identifier.hpp"

#include <filesystem>

namespace opensandbox::test_support {

/// A directory that is gone after the test, however it ends.
class ScratchDirectory {
  public:
    ScratchDirectory()
        : path(std::filesystem::temp_directory_path() / ("opensandbox-test-" + new_hex_id())) {
        std::filesystem::create_directories(path);
    }
    ~ScratchDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    ScratchDirectory(const ScratchDirectory&) = delete;
    ScratchDirectory& operator=(const ScratchDirectory&) = delete;

    const std::filesystem::path path;
};

}  // namespace opensandbox::test_support
