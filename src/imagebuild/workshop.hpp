#pragma once

#include "imagebuild/cancellation.hpp"
#include "imagebuild/image_settings.hpp"
#include "net/stream.hpp"
#include "opensandbox/images.hpp"
#include "opensandbox/sandbox.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace opensandbox::imagebuild {

/// An image that a stage begins with.
struct BaseImage {
    std::string reference;
    std::string digest;
    ImageSettings settings;
};

/// What a build uses of a server: sandboxes to work in, snapshots of them, images. Knows all that
/// it made and has not removed yet.
class Workshop {
  public:
    Workshop(sdk::Connection connection, std::map<std::string, std::string> resource_limits);
    ~Workshop();
    Workshop(const Workshop&) = delete;
    Workshop& operator=(const Workshop&) = delete;

    /// Learns which images there are.
    Awaitable<sdk::Status> look_around();
    /// The image of this reference as of look_around(), and those kept since; null when there is
    /// none. "name" means "name:latest".
    [[nodiscard]] const sdk::ImageInfo* find(const std::string& reference) const;
    /// An image for FROM and --from, with its settings.
    Awaitable<sdk::Result<BaseImage>> base(std::string reference);
    /// The image without any file.
    Awaitable<sdk::Result<BaseImage>> scratch();

    /// A sandbox that waits. It lives until close(), or some minutes after the end of this program.
    Awaitable<sdk::Result<sdk::Sandbox>> open(std::string image);
    Awaitable<sdk::Status> close(sdk::Sandbox sandbox);
    /// Makes an image of a sandbox as it is now, and closes it.
    Awaitable<sdk::Result<sdk::ImageInfo>> keep(sdk::Sandbox sandbox, std::string reference,
                                                ImageSettings settings);
    /// Gives an image another name and settings.
    Awaitable<sdk::Result<sdk::ImageInfo>> tag(std::string source, std::string reference,
                                               ImageSettings settings);

    /// Removes every sandbox and snapshot that is left; says what could not be removed.
    Awaitable<std::vector<std::string>> clean_up();

  private:
    struct State;
    void remember(const sdk::ImageInfo& image);

    sdk::Connection connection_;
    std::map<std::string, std::string> resource_limits_;
    std::map<std::string, sdk::ImageInfo> images_;
    std::shared_ptr<State> state_;
};

}  // namespace opensandbox::imagebuild
