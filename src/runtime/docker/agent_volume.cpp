#include "runtime/docker/agent_volume.hpp"

#include "base/digest.hpp"
#include "base/log.hpp"
#include "base/scope_exit.hpp"
#include "net/task.hpp"
#include "runtime/docker/names.hpp"
#include "runtime/docker/own_program.hpp"
#include "runtime/docker/tar_archive.hpp"

#include <boost/asio/redirect_error.hpp>

#include <array>

namespace opensandbox::runtime::docker {
namespace {

/// A container of another server that fills the same volume is waited for this long.
constexpr std::chrono::seconds kOtherFiller{60};
constexpr std::chrono::milliseconds kLook{100};
constexpr std::uint32_t kProgramMode = 0755;
constexpr std::size_t kMaxProgram = std::size_t{256} << 20;

std::string archive_of(std::string_view program) {
    TarArchive tar;
    tar.add_file("opensandbox", program, kProgramMode);
    tar.add_link("execd", "opensandbox");
    tar.add_link("bootstrap.sh", "opensandbox");
    return tar.finish();
}

VolumeRequest volume_request(const std::string& name, const std::string& version) {
    VolumeRequest request(name);
    request.labels.emplace_back(std::string(label::kAgent), version);
    return request;
}

json::object filler_body(const std::string& image, const std::string& volume,
                         const std::string& version) {
    json::object mount;
    mount["Type"] = "volume";
    mount["Source"] = volume;
    mount["Target"] = kAgentDirectory;
    mount["VolumeOptions"] = json::object{{"NoCopy", true}};
    json::object body;
    body["Image"] = image;
    body["Entrypoint"] = json::array{"/never-started"};
    body["Labels"] = json::object{{label::kAgent, version}};
    body["NetworkDisabled"] = true;
    body["HostConfig"] =
        json::object{{"Mounts", json::array{std::move(mount)}}, {"NetworkMode", "none"}};
    return body;
}

/// What the published agent's image holds (lifecycle 6.3), and whether it must.
struct StagedFile {
    const char* path;
    bool required;
};
constexpr std::array<StagedFile, 5> kPublishedFiles{{
    {"/execd", true},
    {"/bootstrap.sh", true},
    {"/usr/local/bin/bwrap", false},
    {"/usr/local/libexec/opensandbox-session-gate", false},
    {"/usr/local/libexec/opensandbox-launcher", false},
}};

}  // namespace

AgentVolume::AgentVolume(asio::any_io_executor executor, Engine& engine,
                         asio::thread_pool& blocking, const DockerOptions& options)
    : engine_(engine), blocking_(blocking), options_(options), filled_(executor) {}

Awaitable<Status> AgentVolume::identify() {
    std::function<Result<std::string>()> work =
        [path = options_.executable.string(),
         image = options_.execd_image]() -> Result<std::string> {
        if (!image.empty()) return sha256_hex(image);
        return digest_of_program(path);
    };
    auto digest = co_await net::run_blocking<Result<std::string>>(blocking_, std::move(work));
    if (!digest) co_return digest.error();
    version_ = digest->substr(0, kVersionDigits);
    name_ = "opensandbox-agent-" + version_;
    co_return Status();
}

Awaitable<Result<std::string>> AgentVolume::ensure(std::string image) {
    while (filling_) {
        boost::system::error_code ignored;
        co_await filled_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (complete_) co_return name_;
    filling_ = true;
    filled_.expires_at(asio::steady_timer::time_point::max());
    ScopeExit wake([this] {
        filling_ = false;
        filled_.cancel();
    });
    auto complete = co_await is_complete();
    if (!complete) co_return complete.error();
    if (!*complete) {
        auto filled = co_await fill(std::move(image));
        if (!filled) co_return filled.error();
    }
    complete_ = true;
    co_return name_;
}

Awaitable<Result<bool>> AgentVolume::is_complete() {
    for (const std::string& name : {name_, name_ + "-complete"}) {
        auto volume = co_await engine_.inspect_volume(name);
        if (!volume && volume.error().code() == ErrorCode::not_found) co_return false;
        if (!volume) co_return volume.error();
        bool ours = false;
        for (const auto& [key, value] : volume->labels)
            ours = ours || (key == label::kAgent && value == version_);
        if (!ours) co_return false;
    }
    co_return true;
}

Awaitable<Status> AgentVolume::fill(std::string image) {
    auto volume = co_await engine_.create_volume(volume_request(name_, version_));
    if (!volume) co_return volume.error();
    auto container = co_await open_container(std::move(image));
    if (!container) co_return container.error();
    if (container->empty()) co_return Status();  // another server did it
    auto filled = co_await fill_through(*container);
    auto removed = co_await engine_.remove_container(*container, true, false);
    if (!filled) co_return filled;
    if (!removed) co_return removed;
    auto marked = co_await engine_.create_volume(volume_request(name_ + "-complete", version_));
    if (!marked) co_return marked.error();
    log::info("agent staged at the engine", {{"volume", name_}});
    co_return Status();
}

/// A container with the volume, or empty when another server has filled it meanwhile. Its name is
/// the lock among servers.
Awaitable<Result<std::string>> AgentVolume::open_container(std::string image) {
    auto limit = std::chrono::steady_clock::now() + kOtherFiller;
    while (true) {
        json::object body = filler_body(image, name_, version_);
        auto made = co_await engine_.create_container(name_, std::move(body));
        if (made) co_return made->id;
        if (made.error().code() != ErrorCode::conflict) co_return made.error();
        if (std::chrono::steady_clock::now() > limit) {
            // Whoever began it is gone.
            auto removed = co_await engine_.remove_container(name_, true, false);
            if (!removed) co_return removed.error();
            continue;
        }
        co_await net::sleep_for(kLook);
        auto complete = co_await is_complete();
        if (!complete) co_return complete.error();
        if (*complete) co_return std::string();
    }
}

Awaitable<Status> AgentVolume::fill_through(std::string container) {
    if (foreign()) co_return co_await copy_from_image(std::move(container));
    std::function<Result<std::string>()> work =
        [path = options_.executable.string()]() -> Result<std::string> {
        auto program = read_program(path);
        if (!program) return program.error();
        return archive_of(*program);
    };
    auto tar = co_await net::run_blocking<Result<std::string>>(blocking_, std::move(work));
    if (!tar) co_return tar.error();
    co_return co_await engine_.upload_archive(std::move(container), std::string(kAgentDirectory),
                                              std::move(*tar));
}

Awaitable<Status> AgentVolume::copy_from_image(std::string container) {
    json::object body;
    body["Image"] = options_.execd_image;
    body["Entrypoint"] = json::array{"/never-started"};
    body["Labels"] = json::object{{label::kAgent, version_}};
    auto source = co_await engine_.create_container(name_ + "-source", body);
    if (!source && source.error().code() == ErrorCode::not_found) {
        PullRequest pull(options_.execd_image);
        auto pulled = co_await engine_.pull_image(std::move(pull));
        if (!pulled) co_return pulled.error().within("runtime.execd_image");
        source = co_await engine_.create_container(name_ + "-source", body);
    }
    if (!source && source.error().code() == ErrorCode::conflict) {
        auto removed = co_await engine_.remove_container(name_ + "-source", true, false);
        if (!removed) co_return removed;
        source = co_await engine_.create_container(name_ + "-source", body);
    }
    if (!source) co_return source.error().within("runtime.execd_image");
    Status copied;
    for (const StagedFile& file : kPublishedFiles) {
        std::string tar;
        std::function<Status(std::string_view)> sink = [&tar](std::string_view piece) -> Status {
            tar += piece;
            return {};
        };
        auto read =
            co_await engine_.download_archive(source->id, file.path, kMaxProgram, std::move(sink));
        if (!read && !file.required && read.error().code() == ErrorCode::not_found) continue;
        if (read) {
            read = co_await engine_.upload_archive(container, std::string(kAgentDirectory),
                                                   std::move(tar));
        }
        if (!read) {
            copied = read.error().within("runtime.execd_image: " + std::string(file.path));
            break;
        }
    }
    auto removed = co_await engine_.remove_container(source->id, true, false);
    if (!copied) co_return copied;
    co_return removed;
}

}  // namespace opensandbox::runtime::docker
