#pragma once

#include "kube/api/client.hpp"
#include "kube/object/metadata.hpp"

#include <string>

namespace opensandbox::controller {

/// Tells people what happened to an object, by events beside it. Off the way of what is worked at;
/// what cannot be written is only logged. Borrows the client.
class EventWriter {
  public:
    EventWriter(asio::any_io_executor executor, kube::Client& client)
        : executor_(std::move(executor)), client_(client) {}

    /// `type` is Normal or Warning.
    void tell(const kube::Resource& resource, const kube::Metadata& about, const std::string& type,
              const std::string& reason, std::string message);

  private:
    Awaitable<void> write(json::object event, std::string name_space);

    asio::any_io_executor executor_;
    kube::Client& client_;
};

}  // namespace opensandbox::controller
