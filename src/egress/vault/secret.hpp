#pragma once

#include <boost/json/memory_resource.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace opensandbox::egress {

/// Overwrites the bytes of a text, and empties it.
void wipe(std::string& text);

/// A value that is gone from memory once its last owner is: it is kept in one place, and
/// overwritten there. Nothing prints it.
class Secret {
  public:
    explicit Secret(std::string_view value);
    Secret(const Secret&) = delete;
    Secret& operator=(const Secret&) = delete;
    ~Secret();

    [[nodiscard]] std::string_view value() const { return {bytes_.get(), size_}; }

  private:
    std::unique_ptr<char[]> bytes_;
    std::size_t size_;
};

using SecretPtr = std::shared_ptr<const Secret>;

/// Memory for JSON documents with secrets: overwritten before it is given back.
class WipedMemory final : public boost::json::memory_resource {
  private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override;
    [[nodiscard]] bool do_is_equal(
        const boost::json::memory_resource& other) const noexcept override {
        return this == &other;
    }
};

}  // namespace opensandbox::egress
