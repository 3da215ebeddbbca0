#pragma once

#include "net/stream.hpp"
#include "opensandbox/bytes.hpp"
#include "sdk/stdio/output_queue.hpp"

#include <memory>

namespace opensandbox::sdk {

/// Standard input, whatever it is: a file, a pipe or a terminal. Waiting for it blocks nothing.
Result<std::unique_ptr<ByteReader>> open_standard_input(asio::any_io_executor executor);

/// Passes a download to standard output.
class StandardOutputWriter : public ByteWriter {
  public:
    explicit StandardOutputWriter(asio::any_io_executor executor);
    /// `cancelled` when nobody reads any more.
    Awaitable<Status> write(std::string_view bytes) override;
    Awaitable<void> flush() { return queue_.flush(); }
    [[nodiscard]] bool reader_gone() const { return queue_.reader_gone(); }

  private:
    OutputQueue queue_;
};

}  // namespace opensandbox::sdk
