#include "imagebuild/workshop.hpp"

#include "imagebuild/cache_key.hpp"
#include "net/task.hpp"
#include "opensandbox/snapshots.hpp"

#include <algorithm>
#include <array>

namespace opensandbox::imagebuild {
namespace {

using namespace std::chrono_literals;

/// Lifetime of a step's sandbox. It is renewed while we are there: one that we could not delete is
/// gone ten minutes later.
constexpr std::chrono::seconds kLease = 10min;
constexpr std::chrono::seconds kRenewEvery = 3min;
constexpr std::chrono::minutes kSnapshotLimit{30};
constexpr std::chrono::minutes kRemovalLimit{1};

std::string with_tag(const std::string& reference) {
    if (reference == "host" || reference.find('@') != std::string::npos) return reference;
    const auto slash = reference.rfind('/');
    const auto colon = reference.rfind(':');
    const bool tagged = colon != std::string::npos && (slash == std::string::npos || colon > slash);
    return tagged ? reference : reference + ":latest";
}

sdk::ImageConfigChange to_change(ImageSettings settings) {
    sdk::ImageConfigChange change;
    change.environment.emplace(settings.environment.begin(), settings.environment.end());
    change.user = std::move(settings.user);
    change.working_directory = std::move(settings.working_directory);
    change.entrypoint = std::move(settings.entrypoint);
    change.cmd = std::move(settings.cmd);
    change.labels = std::move(settings.labels);
    change.exposed_ports = std::move(settings.exposed_ports);
    return change;
}

bool is_gone(const sdk::Error& error) {
    return error.code() == sdk::ErrorCode::not_found;
}

/// A tar of the directories that every root file system has, so that it is known for one.
std::string scratch_archive() {
    std::string out;
    for (std::string_view name : {"dev/", "etc/", "proc/", "sys/"}) {
        std::array<char, 512> header{};
        auto put = [&](std::size_t at, std::string_view text) {
            std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(at));
        };
        put(0, name);
        put(100, "0000755");
        put(108, "0000000");
        put(116, "0000000");
        put(124, "00000000000");
        put(136, "00000000000");
        put(148, "        ");
        put(156, "5");
        put(257, std::string_view("ustar\0"
                                  "00",
                                  8));
        unsigned sum = 0;
        for (char c : header)
            sum += static_cast<unsigned char>(c);
        std::string digits(6, '0');
        for (std::size_t i = digits.size(); i-- > 0; sum /= 8)
            digits[i] = static_cast<char>('0' + sum % 8);
        put(148, digits + std::string("\0 ", 2));
        out.append(header.data(), header.size());
    }
    return out + std::string(1024, '\0');
}

}  // namespace

/// What was made and not removed yet; the task that renews leases looks at it, too.
struct Workshop::State {
    std::vector<sdk::Sandbox> sandboxes;
    std::vector<std::string> snapshots;
    bool ended = false;
    bool renewing = false;

    void forget(const std::string& sandbox) {
        std::erase_if(sandboxes, [&](const sdk::Sandbox& s) { return s.id() == sandbox; });
    }
    static Awaitable<void> renew(std::shared_ptr<State> state) {
        while (!state->ended) {
            co_await net::sleep_for(kRenewEvery);
            const std::vector<sdk::Sandbox> all = state->sandboxes;
            for (const sdk::Sandbox& sandbox : all) {
                auto ignored = co_await sandbox.renew(kLease);  // the next round tries again
                static_cast<void>(ignored);
            }
        }
    }
};

Workshop::Workshop(sdk::Connection connection, std::map<std::string, std::string> resource_limits)
    : connection_(std::move(connection)),
      resource_limits_(std::move(resource_limits)),
      state_(std::make_shared<State>()) {}

Workshop::~Workshop() {
    state_->ended = true;
}

void Workshop::remember(const sdk::ImageInfo& image) {
    images_[image.reference] = image;
}

Awaitable<sdk::Status> Workshop::look_around() {
    sdk::Images images(connection_);
    auto found = co_await images.list();
    if (!found) co_return found.error();
    for (const sdk::ImageInfo& image : *found)
        remember(image);
    co_return sdk::Status();
}

const sdk::ImageInfo* Workshop::find(const std::string& reference) const {
    const auto found = images_.find(with_tag(reference));
    return found == images_.end() ? nullptr : &found->second;
}

Awaitable<sdk::Result<BaseImage>> Workshop::base(std::string reference) {
    sdk::Images images(connection_);
    std::string name = with_tag(reference);
    if (!find(name)) {
        auto pulled = co_await images.pull(name);
        if (!pulled) {
            co_return pulled.error().within("the server has no image '" + reference +
                                            "' and could not pull it");
        }
        remember(*pulled);
    }
    auto details = co_await images.inspect(name);
    if (!details) co_return details.error();
    BaseImage base;
    base.reference = std::move(name);
    base.digest = details->info.digest;
    base.settings.environment.insert(details->env.begin(), details->env.end());
    base.settings.user = std::move(details->user);
    base.settings.working_directory = std::move(details->working_directory);
    base.settings.entrypoint = std::move(details->entrypoint);
    base.settings.cmd = std::move(details->cmd);
    base.settings.labels = std::move(details->labels);
    base.settings.exposed_ports = std::move(details->exposed_ports);
    co_return base;
}

Awaitable<sdk::Result<BaseImage>> Workshop::scratch() {
    BaseImage base;
    base.reference = std::string(kCachePrefix) + "scratch:latest";
    if (const sdk::ImageInfo* known = find(base.reference)) {
        base.digest = known->digest;
        co_return base;
    }
    sdk::Images images(connection_);
    const std::string archive = scratch_archive();
    auto source = sdk::read_bytes(archive);
    auto image = co_await images.import_archive(base.reference, *source);
    if (!image) co_return image.error();
    remember(*image);
    base.digest = image->digest;
    co_return base;
}

Awaitable<sdk::Result<sdk::Sandbox>> Workshop::open(std::string image) {
    sdk::CreateOptions options(std::move(image));
    options.timeout = kLease;
    options.metadata["opensandbox-build"] = "step";
    for (const auto& [name, value] : resource_limits_)
        options.resource_limits[name] = value;
    auto sandbox = co_await sdk::Sandbox::create(connection_, std::move(options));
    if (!sandbox) co_return sandbox.error();
    state_->sandboxes.push_back(*sandbox);
    if (!std::exchange(state_->renewing, true)) {
        net::spawn(connection_.executor(), State::renew(state_), "renew build sandboxes");
    }
    co_return sandbox;
}

Awaitable<sdk::Status> Workshop::close(sdk::Sandbox sandbox) {
    auto killed = co_await sandbox.kill();
    if (!killed && !is_gone(killed.error())) co_return killed.error();
    state_->forget(sandbox.id());
    co_return sdk::Status();
}

Awaitable<sdk::Result<sdk::ImageInfo>> Workshop::keep(sdk::Sandbox sandbox, std::string reference,
                                                      ImageSettings settings) {
    sdk::Snapshots snapshots(connection_);
    auto snapshot = co_await snapshots.create(sandbox.id());
    if (!snapshot) co_return snapshot.error().within("snapshot");
    const std::string id = snapshot->id;
    state_->snapshots.push_back(id);
    auto made = co_await snapshots.wait(id, kSnapshotLimit);
    if (!made) co_return made.error().within("snapshot");
    if (made->state != "Ready") {
        co_return sdk::Error(sdk::ErrorCode::internal,
                             "the snapshot of the step failed: " +
                                 made->message.value_or(made->reason.value_or(made->state)));
    }
    sdk::ImageConfigChange change = to_change(std::move(settings));
    auto image = co_await snapshots.make_image(id, std::move(reference), std::move(change));
    if (!image) co_return image.error().within("image of the step");
    remember(*image);
    auto removed = co_await snapshots.remove(id);
    if (removed || is_gone(removed.error())) std::erase(state_->snapshots, id);
    auto closed = co_await close(std::move(sandbox));
    if (!closed) co_return closed.error();
    co_return image;
}

Awaitable<sdk::Result<sdk::ImageInfo>> Workshop::tag(std::string source, std::string reference,
                                                     ImageSettings settings) {
    sdk::Images images(connection_);
    sdk::ImageConfigChange change = to_change(std::move(settings));
    auto image = co_await images.tag(std::move(source), reference, std::move(change));
    if (!image) co_return image.error().within(reference);
    remember(*image);
    co_return image;
}

Awaitable<std::vector<std::string>> Workshop::clean_up() {
    std::vector<std::string> left;
    const std::vector<sdk::Sandbox> sandboxes = state_->sandboxes;
    for (const sdk::Sandbox& sandbox : sandboxes) {
        auto closed = co_await close(sandbox);
        if (!closed) left.push_back("sandbox " + sandbox.id() + ": " + closed.error().message());
    }
    sdk::Snapshots snapshots(connection_);
    const std::vector<std::string> ids = state_->snapshots;
    for (const std::string& id : ids) {
        // One that is being made cannot be removed.
        auto made = co_await snapshots.wait(id, kRemovalLimit);
        static_cast<void>(made);
        auto removed = co_await snapshots.remove(id);
        if (removed || is_gone(removed.error())) {
            std::erase(state_->snapshots, id);
        } else {
            left.push_back("snapshot " + id + ": " + removed.error().message());
        }
    }
    co_return left;
}

}  // namespace opensandbox::imagebuild
