#include "registry/progress.hpp"

namespace opensandbox::registry {

std::string_view to_string(LayerProgress::Status status) {
    using Status = LayerProgress::Status;
    switch (status) {
        case Status::waiting: return "waiting";
        case Status::present: return "present";
        case Status::downloading: return "downloading";
        case Status::downloaded: return "downloaded";
        case Status::unpacking: return "unpacking";
        case Status::packing: return "packing";
        case Status::uploading: return "uploading";
        case Status::mounted: return "mounted";
        case Status::done: return "done";
    }
    return "waiting";
}

}  // namespace opensandbox::registry
