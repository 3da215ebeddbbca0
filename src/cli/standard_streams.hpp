#pragma once

#include "cli/output_queue.hpp"
#include "net/stream.hpp"
#include "opensandbox/bytes.hpp"

#include <memory>

namespace opensandbox::cli {

/// Standard input, whatever it is: a file, a pipe or a terminal. Waiting for it blocks nothing.
sdk::Result<std::unique_ptr<sdk::ByteReader>> open_standard_input(asio::any_io_executor executor);

/// Passes a download to standard output.
class StandardOutputWriter : public sdk::ByteWriter {
  public:
    explicit StandardOutputWriter(asio::any_io_executor executor);
    /// `cancelled` when nobody reads any more.
    Awaitable<sdk::Status> write(std::string_view bytes) override;
    Awaitable<void> flush() { return queue_.flush(); }
    [[nodiscard]] bool reader_gone() const { return queue_.reader_gone(); }

  private:
    OutputQueue queue_;
};

}  // namespace opensandbox::cli
