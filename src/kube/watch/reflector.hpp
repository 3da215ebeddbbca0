#pragma once

#include "kube/api/client.hpp"
#include "kube/watch/frame_splitter.hpp"
#include "kube/watch/watch_sink.hpp"
#include "net/task.hpp"

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace opensandbox::kube {

struct WatchEvent;

/// What is watched.
struct WatchChoice {
    Resource resource;
    std::string name_space;  ///< empty: all namespaces
    std::string label_selector;
    std::string field_selector;
    /// Members of an object that are read ("status.phase") besides its metadata; empty: all.
    std::vector<std::string> members;
    /// A stream in which nothing comes for so long, no bookmark either, is begun anew.
    std::chrono::milliseconds silence{150'000};
};

/// Objects of a kind in a namespace with a label (empty: all of them), with these members.
WatchChoice watch_of(Resource resource, std::string name_space, std::string_view label,
                     std::vector<std::string> members);

/// Tells a sink of all objects of a choice, and goes on telling what becomes of them: one request
/// that begins with what is there where the API server can do that, a list and a watch elsewhere.
/// What breaks is taken up where it ended; when that is too long ago, all is listed anew. Failures
/// are repeated after pauses that grow. Borrows client and sink.
class Reflector {
  public:
    Reflector(Client& client, WatchChoice choice, WatchSink& sink);
    Reflector(const Reflector&) = delete;
    Reflector& operator=(const Reflector&) = delete;

    /// Runs until stop(), or the coroutine is cancelled. Once.
    Awaitable<void> run();
    void stop();

    /// Whether a stream is open that has told all there was when it began.
    [[nodiscard]] bool follows() const { return follows_; }

  private:
    Awaitable<Status> follow();
    Awaitable<Status> list();
    Awaitable<Status> watch(bool from_the_beginning);
    Awaitable<Status> read_stream(http::ClientResponse* answer);
    Status take(std::string_view bytes);
    void take_event(WatchEvent event);
    void complain(const Error& error);
    [[nodiscard]] std::string target(bool from_the_beginning);

    Client& client_;
    WatchChoice choice_;
    WatchSink& sink_;
    std::shared_ptr<const json::Selection> list_members_;
    std::shared_ptr<const json::Selection> event_members_;
    FrameSplitter frames_;
    std::string version_;  ///< the watch goes on from here; empty: all is to be told anew
    bool listing_ = false;
    bool streams_lists_ = true;
    bool follows_ = false;
    bool complained_ = false;  ///< since something was told last
    bool stopped_ = false;
    http::ClientResponse* answer_ = nullptr;
    net::Event stop_;
    BackOff pauses_;
    std::minstd_rand chance_;
};

}  // namespace opensandbox::kube
