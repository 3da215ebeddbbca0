#pragma once

#include "http/exchange.hpp"

#include <stop_token>
#include <utility>

namespace opensandbox::http {

/// Lets work that an exchange asked for end when its client is gone, and when this goes: the
/// handler has ended by then. Made once the request's body was read to its end; instead of the
/// exchange's own on_client_gone().
class ClientStop {
  public:
    /// `source` is that of work which began before.
    explicit ClientStop(Exchange& exchange, std::stop_source source = {})
        : exchange_(exchange), source_(std::move(source)) {
        exchange.on_client_gone([stop = source_]() mutable { stop.request_stop(); });
    }
    ClientStop(const ClientStop&) = delete;
    ClientStop& operator=(const ClientStop&) = delete;
    ~ClientStop() {
        exchange_.on_client_gone(nullptr);
        source_.request_stop();
    }

    [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
    /// For what else may end the work.
    void request_stop() { source_.request_stop(); }

  private:
    Exchange& exchange_;
    std::stop_source source_;
};

}  // namespace opensandbox::http
