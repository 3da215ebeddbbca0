#pragma once

#include "runtime/native/records/pool_settings.hpp"

#include <map>
#include <string>

namespace opensandbox::runtime::native {

/// Which images have warm slots: `[native.warm]`.
struct WarmOptions {
    PoolSettings pool{1, 8, 60};  ///< of an image that says nothing else
    struct Image {
        std::string programs;  ///< JSON as in the label; empty: what the label says
        PoolSettings pool;
    };
    std::map<std::string, Image> images;  ///< by reference
};

}  // namespace opensandbox::runtime::native
