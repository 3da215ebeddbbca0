#include "image/layer_unpack.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>

namespace opensandbox::image {

Error wrong_digest(std::string_view what, const std::string& is, const std::string& must_be) {
    return {ErrorCode::invalid_argument,
            in_quotes(what) + ": the digest is sha256:" + is + ", must be sha256:" + must_be};
}

Result<UniqueFd> make_layer_directory(const std::filesystem::path& path) {
    if (::mkdir(path.c_str(), 0755) != 0 || ::chmod(path.c_str(), 0755) != 0) {
        int number = errno;
        return Error::from_errno(number, "make " + path.string());
    }
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return Error::from_errno(errno, "open " + path.string());
    return fd;
}

Result<LayerRecord> unpack_blob(const LayerBlobRules& rules, InputStream& blob,
                                const std::filesystem::path& parent, ImportBudget& budget,
                                const std::stop_token& stop) {
    auto directory = make_layer_directory(parent / rules.diff_id);
    if (!directory) return directory.error();
    HashedInput packed(blob);
    auto plain = decompressed(packed);
    if (!plain) return plain.error();
    StoppableInput stoppable(**plain, stop);
    MeteredInput metered(stoppable, budget, ImportBudget::Stage::layers);
    HashedInput tar(metered);
    auto record = unpack_layer(tar, directory->get(), budget);
    if (!record) return record;
    if (auto ok = drain(packed); !ok) return ok.error();
    if (!rules.hex.empty()) {
        if (std::string hex = packed.finish(); hex != rules.hex) {
            return wrong_digest(rules.name, hex, rules.hex);
        }
    }
    if (std::string hex = tar.finish(); hex != rules.diff_id) {
        return wrong_digest(rules.name, hex, rules.diff_id);
    }
    return record;
}

}  // namespace opensandbox::image
