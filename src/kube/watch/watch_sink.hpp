#pragma once

#include "json/document.hpp"

#include <string>

namespace opensandbox::kube {

/// What is told of objects that are listed and watched.
class WatchSink {
  public:
    virtual ~WatchSink() = default;
    /// What follows, up to end_listing(), is all that there is.
    virtual void begin_listing() = 0;
    /// Here it is, new or changed.
    virtual void put(const json::object& object) = 0;
    /// Whatever was not put since begin_listing() and is older than `version` is gone.
    virtual void end_listing(const std::string& version) = 0;
    virtual void remove(const json::object& object) = 0;
    /// All that happened up to this version was told.
    virtual void reached(const std::string& version) = 0;
};

}  // namespace opensandbox::kube
