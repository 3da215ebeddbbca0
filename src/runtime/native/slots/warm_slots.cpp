#include "runtime/native/slots/warm_slots.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

namespace opensandbox::runtime::native {

using namespace std::chrono_literals;

namespace {

constexpr auto kWarmBurstGap = 250ms;
/// Starting programs is work for a processor; the rest of the host goes on.
constexpr std::uint32_t kMaxMaking = 2;

/// The request without what may differ between sandboxes of one warm slot. Whatever a request has
/// beside these makes another kind of slot, so that nothing is ever taken for the same by mistake.
CreateRequest base_of(CreateRequest request) {
    request.request = 0;
    request.id.clear();
    SandboxPlan& plan = request.plan;
    plan.environment = plan.image.config.env;
    plan.entrypoint.clear();
    // Control groups change at any time; all other limits are there when a slot becomes warm.
    plan.limits.cpu_cores = 0;
    plan.limits.memory_bytes = 0;
    plan.limits.pids = 0;
    plan.network.hostname.clear();
    request.cpu_request = 0;
    request.memory_request = 0;
    request.agent_token.clear();
    request.egress = {};
    request.authority.clear();
    return request;
}

/// What hardly ever comes twice alike is not worth mounting ahead.
bool is_usual(const CreateRequest& request) {
    const SandboxPlan& plan = request.plan;
    return plan.snapshot_layers.empty() && request.volumes.empty() && request.hooks.empty() &&
           plan.network.shared.empty() && plan.network.published.empty();
}

/// All of the base but its name and how many are wanted.
std::string key_of(CreateRequest base) {
    base.plan.image.reference.clear();
    base.warm_pool = {};
    return encode(base);
}

bool exists(const CreateRequest& base) {
    return std::ranges::all_of(base.plan.image.layers, [](const std::string& layer) {
        return ::access(layer.c_str(), F_OK) == 0;
    });
}

}  // namespace

WarmSlots::Image* WarmSlots::add(const std::string& key, CreateRequest request) {
    const auto found = images_.find(key);
    if (found != images_.end()) {
        if (found->second.request.warm_pool != request.warm_pool)
            found->second.demand.configure(request.warm_pool);
        found->second.request = std::move(request);
        return &found->second;
    }
    if (images_.size() >= kMaxImages) return nullptr;
    Image& image = images_[key];
    image.demand.configure(request.warm_pool);
    image.request = std::move(request);
    return &image;
}

std::vector<SlotId> WarmSlots::keep(std::vector<CreateRequest> images) {
    std::map<std::string, CreateRequest> wanted;
    for (CreateRequest& request : images) {
        CreateRequest base = base_of(std::move(request));
        std::string key = key_of(base);
        wanted.insert_or_assign(std::move(key), std::move(base));
    }
    std::erase_if(images_, [&](const auto& item) {
        if (item.second.is_mounted() || wanted.contains(item.first)) return false;
        useless_.insert(useless_.end(), item.second.ready.begin(), item.second.ready.end());
        return true;
    });
    for (auto& [key, request] : wanted)
        add(key, std::move(request));
    return std::exchange(useless_, {});
}

void WarmSlots::share(std::uint32_t slots, std::uint32_t idle_seconds) {
    share_ = slots;
    idle_seconds_ = idle_seconds;
}

void WarmSlots::clear() {
    images_.clear();
    useless_.clear();
    share_ = 0;
}

/// Of an image that declares nothing. The first request for it only makes it known: many are asked
/// for but once.
WarmSlots::Image* WarmSlots::add_mounted(const std::string& key, CreateRequest request, Time now) {
    const auto found = images_.find(key);
    if (found != images_.end()) return &found->second;
    if (images_.size() >= kMaxImages) {
        auto oldest = images_.end();
        for (auto it = images_.begin(); it != images_.end(); ++it) {
            const Image& image = it->second;
            if (!image.is_mounted() || image.slots() > 0) continue;
            if (oldest == images_.end() || image.last_take < oldest->second.last_take) oldest = it;
        }
        if (oldest == images_.end()) return nullptr;
        images_.erase(oldest);
    }
    request.warm_pool = {0, 1000, idle_seconds_};
    if (Image* image = add(key, std::move(request))) image->last_take = now;
    return nullptr;
}

/// Another image has the name now.
void WarmSlots::forget_predecessors(const std::string& key) {
    const ImageOrigin& present = images_.at(key).request.plan.image;
    std::erase_if(images_, [&](const auto& item) {
        const ImageOrigin& other = item.second.request.plan.image;
        if (other.reference != present.reference || other.digest == present.digest) return false;
        useless_.insert(useless_.end(), item.second.ready.begin(), item.second.ready.end());
        return true;
    });
}

std::optional<SlotId> WarmSlots::take(const CreateRequest& request, Time now) {
    const bool mounted = request.warm.empty();
    if (mounted && (share_ == 0 || !is_usual(request))) return std::nullopt;
    CreateRequest base = base_of(request);
    const std::string key = key_of(base);
    const bool known = images_.contains(key);
    Image* image = mounted ? add_mounted(key, std::move(base), now) : add(key, std::move(base));
    if (!known && images_.contains(key)) forget_predecessors(key);
    if (!image) return std::nullopt;
    if (now - image->last_take > kWarmBurstGap) image->missed = 0;
    image->last_take = now;
    image->demand.on_take(now, image->ready.size(), image->missed + 1);
    if (image->ready.empty()) {
        ++image->missed;
        if (!mounted) ++misses_;
        return std::nullopt;
    }
    if (!mounted) ++hits_;
    const SlotId slot = image->ready.front();
    image->ready.pop_front();
    return slot;
}

std::optional<WarmSlots::Order> WarmSlots::next(Time now, bool quiet) {
    std::uint32_t making = 0;
    for (const auto& [key, image] : images_)
        making += image.making;
    if (making >= kMaxMaking) return std::nullopt;
    std::pair<const std::string, Image>* next = nullptr;
    for (auto& item : images_) {
        if (!wants_more(item.second, now) || (item.second.is_mounted() && !quiet)) continue;
        // Who declares programs comes first, then what was asked for last.
        if (next && !next->second.is_mounted()) continue;
        if (!next || !item.second.is_mounted() || item.second.last_take > next->second.last_take) {
            next = &item;
        }
    }
    if (!next) return std::nullopt;
    ++next->second.making;
    return Order{next->first, next->second.request};
}

bool WarmSlots::wants_more(const Image& image, Time now) const {
    if (image.slots() >= image.demand.target() || now < image.retry_at) return false;
    return !image.is_mounted() || mounted() < share_;
}

std::size_t WarmSlots::mounted() const {
    std::size_t count = 0;
    for (const auto& [key, image] : images_)
        if (image.is_mounted()) count += image.slots();
    return count;
}

bool WarmSlots::ready(const std::string& key, SlotId slot) {
    const auto found = images_.find(key);
    if (found == images_.end()) return false;
    Image& image = found->second;
    if (image.making > 0) --image.making;
    image.failures = 0;
    image.ready.push_back(slot);
    return true;
}

void WarmSlots::failed(const std::string& key, Time now) {
    ++failures_;
    const auto found = images_.find(key);
    if (found == images_.end()) return;
    Image& image = found->second;
    if (image.making > 0) --image.making;
    image.retry_at =
        now + std::min<Time::duration>(1s * (1U << std::min(image.failures, 9U)), 5min);
    ++image.failures;
}

void WarmSlots::gone(const std::string& key, SlotId slot) {
    const auto found = images_.find(key);
    if (found != images_.end()) std::erase(found->second.ready, slot);
}

std::vector<SlotId> WarmSlots::surplus(Time now) {
    std::erase_if(images_, [&](const auto& item) {
        if (exists(item.second.request)) return false;
        useless_.insert(useless_.end(), item.second.ready.begin(), item.second.ready.end());
        return true;
    });
    for (auto& [key, image] : images_) {
        image.demand.tend(now);
        take_surplus(image, image.demand.target());
    }
    while (mounted() > share_) {
        Image* oldest = nullptr;
        for (auto& [key, image] : images_) {
            if (!image.is_mounted() || image.ready.empty()) continue;
            if (!oldest || image.last_take < oldest->last_take) oldest = &image;
        }
        if (!oldest) break;
        take_surplus(*oldest, oldest->ready.size() - 1);
    }
    return std::exchange(useless_, {});
}

void WarmSlots::take_surplus(Image& image, std::size_t wanted) {
    while (image.ready.size() > wanted) {
        useless_.push_back(image.ready.front());
        image.ready.pop_front();
    }
}

std::string WarmSlots::reference(const std::string& key) const {
    const auto found = images_.find(key);
    return found == images_.end() ? std::string() : found->second.request.plan.image.reference;
}

void WarmSlots::tell(Figures& figures) const {
    for (const auto& [key, image] : images_) {
        if (image.is_mounted()) figures.slots_mounted += image.ready.size();
        if (image.is_mounted()) continue;
        figures.warm_ready += image.ready.size();
        figures.warm_target += image.demand.target();
    }
    figures.warm_hits = hits_;
    figures.warm_misses = misses_;
    figures.warm_failures = failures_;
}

}  // namespace opensandbox::runtime::native
