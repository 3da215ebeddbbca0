#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace opensandbox::server {

struct Config;

/// Requests that are counted together, apart from the others.
enum class Traffic : std::uint8_t {
    control,       ///< with a key, to the API itself
    proxied,       ///< to a sandbox, with a key of the server or the sandbox
    unauthorized,  ///< without one
};

/// How many requests may be there at once; 0: as many as come.
struct RoomLimits {
    std::size_t control = 0;
    std::size_t proxied = 0;
    std::size_t unauthorized = 0;
    /// To one sandbox, with and without a key each.
    std::size_t per_sandbox = 0;

    /// No more than the descriptors of this process have room for: those who have no key get an
    /// eighth of them, what is passed on with one a quarter.
    void fit(std::size_t descriptors);
};

/// What the configuration says, as far as there are descriptors for it.
RoomLimits room_limits(const Config& config);

/// Counts requests in flight, so that one kind of them cannot use up what another needs. Pure.
class RequestRooms {
  public:
    explicit RequestRooms(RoomLimits limits) : limits_(limits) {}
    RequestRooms(const RequestRooms&) = delete;
    RequestRooms& operator=(const RequestRooms&) = delete;

    /// The place of one request; free again when this is destroyed. The rooms outlive it.
    class Place {
      public:
        Place(Place&& other) noexcept
            : rooms_(std::exchange(other.rooms_, nullptr)),
              traffic_(other.traffic_),
              sandbox_(std::move(other.sandbox_)) {}
        Place& operator=(Place&& other) noexcept {
            std::swap(rooms_, other.rooms_);
            std::swap(traffic_, other.traffic_);
            std::swap(sandbox_, other.sandbox_);
            return *this;
        }
        ~Place() {
            if (rooms_) rooms_->leave(traffic_, sandbox_);
        }

      private:
        friend class RequestRooms;
        Place(RequestRooms& rooms, Traffic traffic, std::string_view sandbox)
            : rooms_(&rooms), traffic_(traffic), sandbox_(sandbox) {}
        RequestRooms* rooms_;
        Traffic traffic_;
        std::string sandbox_;
    };

    /// A place, or nothing when there is no more room. `sandbox`: the id where a request goes to
    /// one, else empty.
    [[nodiscard]] std::optional<Place> enter(Traffic traffic, std::string_view sandbox = {});
    /// For requests that come from now on.
    void set_limits(RoomLimits limits) { limits_ = limits; }

  private:
    static constexpr std::size_t kInds = 3;
    using Counts = std::array<std::size_t, kInds>;
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const {
            return std::hash<std::string_view>()(text);
        }
    };

    void leave(Traffic traffic, const std::string& sandbox);
    [[nodiscard]] std::size_t limit(Traffic traffic) const;

    RoomLimits limits_;
    Counts counts_{};
    std::unordered_map<std::string, Counts, Hash, std::equal_to<>> sandboxes_;
};

}  // namespace opensandbox::server
