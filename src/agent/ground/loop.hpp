#pragma once

#include <boost/asio/io_context.hpp>

namespace opensandbox::agent {

/// An event loop that can drop what is pending before the objects that it refers to are gone.
class Loop : public boost::asio::io_context {
  public:
    Loop() : boost::asio::io_context(1) {}
    using boost::asio::execution_context::shutdown;
};

}  // namespace opensandbox::agent
