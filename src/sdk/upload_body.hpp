#pragma once

#include "http/message.hpp"
#include "opensandbox/bytes.hpp"

#include <optional>
#include <string>

namespace opensandbox::sdk {

/// A request body made of a caller's bytes with text before and after them. Its length is known
/// when the source's is; a source that then gives more or fewer bytes fails the request.
class UploadBody : public http::BodyReader {
  public:
    /// `source` is borrowed. `progress` hears of the source's bytes only.
    UploadBody(std::string before, ByteReader& source, std::string after, Progress progress);

    Awaitable<opensandbox::Result<std::size_t>> read_some(std::span<char> into) override;
    [[nodiscard]] std::optional<std::uint64_t> content_length() const override;
    /// Why the source failed, when it did.
    [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  private:
    std::size_t take(std::string_view text, std::span<char> into);
    opensandbox::Error fail(Error error);

    std::string before_;
    ByteReader& source_;
    std::string after_;
    Progress progress_;
    std::optional<std::uint64_t> size_;
    std::uint64_t done_ = 0;
    std::size_t offset_ = 0;  ///< within before_ or after_
    enum class Part : unsigned char { before, source, after } part_ = Part::before;
    std::optional<Error> failure_;
};

}  // namespace opensandbox::sdk
