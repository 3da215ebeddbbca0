#pragma once

#include "agent/files/watch_tree.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"

#include <sys/inotify.h>

#include <cstdint>
#include <deque>
#include <dirent.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace opensandbox::agent {

/// What happens to the files of a directory, as events of a stream: JSON objects with `type`
/// (create, modify, delete, move, overflow, error, end), `path`, `directory`, `timestamp` and, of a
/// move, `from`. Uses inotify; whatever it does may block.
///
/// A recursive one takes in directories as they appear, and reports what is in them by then. When
/// the kernel had to drop events it says `overflow`, looks at the whole tree again, and reports
/// what is new or was changed since the last event; what vanished meanwhile stays unsaid.
class FileWatch {
  public:
    /// Directories that one watch may have.
    static constexpr std::size_t kMaxDirectories = 16'384;

    /// Watches a directory, or one file by its name. `not_found`, `permission_denied`, and
    /// `resource_exhausted` when there are too many directories for us or for the kernel.
    static Result<std::unique_ptr<FileWatch>> open(const std::string& path, bool recursive);
    FileWatch(const FileWatch&) = delete;
    FileWatch& operator=(const FileWatch&) = delete;

    /// Readable when there is something to be read.
    [[nodiscard]] int descriptor() const { return inotify_.get(); }

    struct Batch {
        std::string events;
        bool more = false;       ///< read again at once
        bool unsettled = false;  ///< half of a move is known: read again a little later
        bool ended = false;      ///< the last event was `end`
    };
    /// What happened so far, about 64 KiB at most. With `settle` half moves become what they are by
    /// themselves.
    Batch read(bool settle);
    /// Whether the watched directory is no longer at its path. The kernel tells late when someone
    /// still uses it.
    [[nodiscard]] bool lost() const;
    /// The terminal event.
    static std::string end_event(std::string_view path, std::string_view reason);
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    enum class Look : unsigned char {
        quiet,  ///< at the beginning: only watches
        fresh,  ///< of a new directory: everything in it is new
        again,  ///< after an overflow: new is what is not known or has a new time
    };
    struct Scan {
        int watch;
        Look look;
    };
    struct CloseDirectory {
        void operator()(DIR* directory) const { ::closedir(directory); }
    };
    struct HalfMove {
        std::uint32_t cookie;
        int watch;
        std::string name;
        bool directory;
    };

    FileWatch(std::string path, bool recursive) : path_(std::move(path)), recursive_(recursive) {}

    Status begin();
    /// Adds a directory and lines up a look at it. Fails only for want of room.
    Status take_in(int parent, std::string_view name, Look look);
    void take_in_or_say(int parent, std::string_view name, Look look);
    Status scan_some();
    void scan_entry(const Scan& scan, std::string_view name, bool directory);
    [[nodiscard]] bool changed_since(const std::string& path, bool& born) const;
    bool fill();
    void process(const inotify_event& event, std::string_view name);
    void created(int watch, std::string_view name, bool directory);
    void moved_to(const inotify_event& event, std::string_view name, bool directory);
    void settle_moves();
    void overflowed();
    void end(std::string_view reason);
    void emit(std::string_view type, int watch, std::string_view name, bool directory,
              const std::string* from = nullptr);
    void say_error(const std::string& path, std::string_view message);
    void forget(int watch);

    std::string path_;
    bool recursive_;
    std::string only_;  ///< when a file is watched: its name
    UniqueFd inotify_;
    std::optional<WatchTree> tree_;
    std::deque<Scan> scans_;
    std::unique_ptr<DIR, CloseDirectory> scanning_;  ///< of the first scan
    std::set<std::pair<int, std::string>> known_;  ///< reported by a scan, their events may follow
    std::vector<HalfMove> half_moves_;
    std::string buffer_;
    std::string out_;
    std::string last_modified_;     ///< path of the latest event, if it was `modify`
    std::int64_t quiet_since_ = 0;  ///< ms: all that happened before was read
    bool second_look_ = false;      ///< at the whole tree, after an overflow
    bool said_full_ = false;
    bool ended_ = false;
};

}  // namespace opensandbox::agent
