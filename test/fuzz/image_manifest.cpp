// The JSON documents of image archives: index, manifest, config, docker-save's manifest.json.
#include "base/digest.hpp"
#include "image/manifest.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace image = opensandbox::image;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    static const image::Reference reference = image::parse_reference("example/app:1").value();
    switch (data[0] % 4) {
        case 0:
            if (auto index = image::parse_index(text)) {
                for (const auto& entry : *index) {
                    if (!opensandbox::is_sha256_hex(entry.hex)) std::abort();
                }
                (void)image::choose(*index, reference);
            }
            break;
        case 1:
            if (auto manifest = image::parse_manifest(text)) {
                if (!opensandbox::is_sha256_hex(manifest->config.hex)) std::abort();
            }
            break;
        case 2:
            if (auto config = image::parse_config(text)) {
                for (const auto& [name, value] : config->config.env) {
                    if (name.empty() || name.find('\0') != std::string::npos) std::abort();
                }
            }
            break;
        default:
            if (auto manifests = image::parse_docker_manifest(text)) {
                (void)image::choose(*manifests, reference);
            }
    }
    return 0;
}
