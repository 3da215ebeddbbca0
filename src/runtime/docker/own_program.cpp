#include "runtime/docker/own_program.hpp"

#include "base/digest.hpp"

#include <fstream>
#include <span>
#include <vector>

namespace opensandbox::runtime::docker {
namespace {

constexpr std::size_t kPiece = 64 * 1024;

Error unreadable(const std::string& path) {
    return {ErrorCode::io, "cannot read this program (" + path + ")"};
}

}  // namespace

std::string_view own_architecture() {
#if defined(__aarch64__)
    return "arm64";
#else
    return "amd64";
#endif
}

Result<std::string> read_program(const std::string& path) {
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    std::string bytes(in ? static_cast<std::size_t>(in.tellg()) : 0, '\0');
    in.seekg(0);
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!in || bytes.empty()) return unreadable(path);
    return bytes;
}

Result<std::string> digest_of_program(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    Sha256 digest;
    std::vector<char> piece(kPiece);
    while (in) {
        in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
        digest.update(std::span(piece.data(), static_cast<std::size_t>(in.gcount())));
    }
    if (!in.eof()) return unreadable(path);
    return digest.finish();
}

}  // namespace opensandbox::runtime::docker
