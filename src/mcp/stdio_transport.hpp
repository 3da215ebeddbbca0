#pragma once

#include "mcp/session.hpp"

namespace opensandbox::mcp {

/// Longest message from a client, in bytes.
inline constexpr std::size_t kMaxMessage = std::size_t{64} << 20U;

/// Cuts input into lines, none longer than a limit.
class LineReader {
  public:
    explicit LineReader(std::size_t limit) : limit_(limit) {}
    void feed(std::string_view bytes);
    enum class Found : unsigned char { nothing, line, too_long };
    /// Takes the next line out, without its end. `too_long`: one was left out.
    Found next(std::string& line);
    /// What stands unterminated at the end of the input.
    Found rest(std::string& line);

  private:
    std::size_t limit_;
    std::string buffer_;
    std::size_t scanned_ = 0;
    bool skipping_ = false;
};

/// Serves one session on standard input and output, a message a line, until the input ends. Calls
/// under way then have a while to end, and are given up after it.
Awaitable<void> serve_stdio(asio::any_io_executor executor, std::shared_ptr<Session> session);

}  // namespace opensandbox::mcp
