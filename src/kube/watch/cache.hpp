#pragma once

#include "base/log.hpp"
#include "kube/api/resource.hpp"
#include "kube/object/metadata.hpp"
#include "kube/watch/watch_sink.hpp"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::kube {

/// What a cache keeps of an object: its metadata, and whatever else is used.
template <class T>
concept Cacheable = requires(const T& object) {
    { object.metadata } -> std::convertible_to<const Metadata&>;
};

/// Objects of one resource as far as they are known here: what a watch tells, and what our own
/// writes were answered with, which is often newer. Of two states of an object the later one stays.
template <Cacheable T>
class Cache final : public WatchSink {
  public:
    using Pointer = std::shared_ptr<const T>;
    using Read = std::function<Result<T>(const json::object&)>;
    /// What an object was and is; null: it was not there, it is gone.
    using Listener = std::function<void(const Pointer& before, const Pointer& after)>;

    /// `what` names the resource in the log.
    Cache(std::string what, Read read) : what_(std::move(what)), read_(std::move(read)) {}

    /// Null when it is not known.
    [[nodiscard]] Pointer find(const ObjectKey& key) const {
        const auto found = objects_.find(key);
        return found == objects_.end() ? nullptr : found->second;
    }
    [[nodiscard]] const std::map<ObjectKey, Pointer>& objects() const { return objects_; }
    /// Whether all objects were told once.
    [[nodiscard]] bool is_complete() const { return complete_; }
    /// Called with every change, also with those of store(). Must not change the cache.
    void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

    /// The answer to a write of ours. The error of what is no such object.
    Result<Pointer> store(const json::object& answer) {
        auto object = read(answer);
        if (!object) return object.error();
        const Metadata& metadata = (*object)->metadata;
        const bool told = !find(key_of(metadata)) && !reached_.empty() &&
                          !is_newer(metadata.resource_version, reached_);
        // The watch is past it: it has told already that the object went.
        if (!told) keep(*object);
        return *object;
    }

    /// Tells of an object once more, for what is known of it besides.
    void touch(const ObjectKey& key) const {
        if (const Pointer object = find(key)) tell(object, object);
    }

    void begin_listing() override {
        listing_ = true;
        listed_.clear();
    }
    void put(const json::object& object) override {
        auto made = read(object);
        if (!made) {
            log::warn("an object of the cluster cannot be read",
                      {{"resource", what_}, {"error", made.error().message()}});
            return;
        }
        if (listing_) listed_.insert(key_of((*made)->metadata));
        keep(*made);
    }
    void end_listing(const std::string& version) override {
        std::vector<Pointer> gone;
        for (const auto& [key, object] : objects_) {
            const bool made_since = is_newer(object->metadata.resource_version, version);
            if (!listed_.contains(key) && !made_since) gone.push_back(object);
        }
        for (const Pointer& object : gone)
            drop(object);
        listed_.clear();
        listing_ = false;
        complete_ = true;
        reached_ = version;
    }
    void remove(const json::object& object) override {
        auto made = read_metadata(object);
        if (!made) return;
        const Pointer known = find(key_of(*made));
        // Another of its name may have come already.
        if (known && known->metadata.uid == made->uid) drop(known);
    }
    void reached(const std::string& version) override { reached_ = version; }

  private:
    static ObjectKey key_of(const Metadata& metadata) {
        return {metadata.name_space, metadata.name};
    }
    Result<Pointer> read(const json::object& object) const {
        auto made = read_(object);
        if (!made) return made.error();
        return std::make_shared<const T>(std::move(*made));
    }
    void keep(const Pointer& object) {
        Pointer& known = objects_[key_of(object->metadata)];
        if (known &&
            !is_newer(object->metadata.resource_version, known->metadata.resource_version)) {
            return;
        }
        const Pointer before = std::exchange(known, object);
        tell(before, object);
    }
    void drop(const Pointer& object) {
        objects_.erase(key_of(object->metadata));
        tell(object, nullptr);
    }
    void tell(const Pointer& before, const Pointer& after) const {
        for (const Listener& listener : listeners_)
            listener(before, after);
    }

    std::string what_;
    Read read_;
    std::map<ObjectKey, Pointer> objects_;
    std::vector<Listener> listeners_;
    std::set<ObjectKey> listed_;
    bool listing_ = false;
    bool complete_ = false;
    std::string reached_;
};

}  // namespace opensandbox::kube
