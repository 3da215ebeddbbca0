#pragma once

#include "runtime/native/records/protocol.hpp"
#include "runtime/native/slots/pool_demand.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace opensandbox::runtime::native {

/// Which slots wait warm: with their image mounted and the programs that it declares started, up to
/// where a sandbox would begin. A request takes one when everything that was fixed by then is the
/// same; entrypoint, environment, limits, token and names come with the request. A slot serves one
/// sandbox and ends with it. Slots of images that declare nothing are part of the pool's: once an
/// image is asked for again, as many as a burst of it needed wait with it mounted. Decides only;
/// makes and ends nothing. Pure.
class WarmSlots {
  public:
    using Time = std::chrono::steady_clock::time_point;

    static constexpr std::size_t kMaxImages = 32;

    /// Exactly these from now on, as a server wants it. Returns ready slots that are of no use now.
    std::vector<SlotId> keep(std::vector<CreateRequest> images);
    /// How many of the pool's slots may wait mounted; a surplus goes after `idle_seconds`.
    void share(std::uint32_t slots, std::uint32_t idle_seconds);
    /// Nothing is wanted any more, and what waits is of no use. Forgets it all.
    void clear();

    /// A slot for this request, if one is ready. Without one the request counts as demand, and an
    /// image that was not known is from now on.
    std::optional<SlotId> take(const CreateRequest& request, Time now);

    /// What to make next, if anything; counts as begun. Slots of the pool are mounted only while it
    /// is `quiet`.
    struct Order {
        std::string key;
        CreateRequest request;  ///< without what comes with a sandbox
    };
    std::optional<Order> next(Time now, bool quiet = true);
    /// It waits now; false when nobody wants it any more.
    bool ready(const std::string& key, SlotId slot);
    /// What was begun did not come to be; the next one waits longer each time.
    void failed(const std::string& key, Time now);
    /// A slot that waited is no more.
    void gone(const std::string& key, SlotId slot);
    /// Ready slots that are not needed any more, or whose image is gone; they are forgotten.
    std::vector<SlotId> surplus(Time now);

    /// What the image was called when it was asked for.
    [[nodiscard]] std::string reference(const std::string& key) const;
    /// The pool's slots that wait mounted or are to.
    [[nodiscard]] std::size_t mounted() const;
    void tell(Figures& figures) const;

  private:
    struct Image {
        [[nodiscard]] bool is_mounted() const { return request.warm.empty(); }
        [[nodiscard]] std::size_t slots() const { return ready.size() + making; }
        CreateRequest request;
        PoolDemand demand;
        std::deque<SlotId> ready;  ///< oldest first
        std::uint32_t making = 0;
        std::uint32_t failures = 0;  ///< in a row
        std::uint32_t missed = 0;    ///< in the present burst
        Time last_take{};
        Time retry_at{};
    };
    Image* add(const std::string& key, CreateRequest request);
    Image* add_mounted(const std::string& key, CreateRequest request, Time now);
    [[nodiscard]] bool wants_more(const Image& image, Time now) const;
    void take_surplus(Image& image, std::size_t wanted);
    void forget_predecessors(const std::string& key);

    std::map<std::string, Image> images_;
    std::vector<SlotId> useless_;
    std::uint32_t share_ = 0;
    std::uint32_t idle_seconds_ = 60;
    std::uint64_t hits_ = 0;
    std::uint64_t misses_ = 0;
    std::uint64_t failures_ = 0;
};

}  // namespace opensandbox::runtime::native
