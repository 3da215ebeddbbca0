#pragma once

#include "image/store.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace opensandbox::image {

/// What one import has used of its ImportLimits. Every stage of unpacking reports here before it
/// writes, so that a bomb is stopped while it is still small.
class ImportBudget {
  public:
    /// A stage that produces bytes from packed ones.
    enum class Stage : std::uint8_t { archive, layers };

    explicit ImportBudget(const ImportLimits& limits) : limits_(limits) {}

    /// Bytes that came from the source.
    void add_packed(std::uint64_t bytes) { packed_ += bytes; }
    /// Bytes of a tar stream, and how many of them cost room (sparse_file.hpp). `too_large` past
    /// the size limit (with room for headers) or the ratio. Of layers, zeros in entries do not
    /// count for that.
    Status add_stream(Stage stage, std::uint64_t bytes, std::uint64_t costly);
    /// One file, link or directory of `apparent_size` bytes, holes included. `too_large` names the
    /// entry and the limit.
    Status add_entry(std::string_view name, std::uint64_t apparent_size);
    /// Forgets all layers; packed bytes and the archive stage stay.
    void restart_layers();

    [[nodiscard]] std::uint64_t unpacked() const { return unpacked_; }
    [[nodiscard]] std::uint64_t entries() const { return entries_; }

  private:
    [[nodiscard]] bool past_ratio(std::uint64_t bytes) const;

    ImportLimits limits_;
    std::uint64_t packed_ = 0;
    struct Stream {
        std::uint64_t bytes = 0;
        std::uint64_t costly = 0;
    };
    Stream archive_;
    Stream layers_;
    std::uint64_t unpacked_ = 0;
    std::uint64_t entries_ = 0;
};

/// An entry's name in quotes for an error: control and non-ASCII bytes as \xNN, cut at 200 bytes.
std::string in_quotes(std::string_view name);

}  // namespace opensandbox::image
