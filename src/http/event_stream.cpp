#include "http/event_stream.hpp"

namespace opensandbox::http {

ResponseHead event_stream_head() {
    ResponseHead head(200);
    head.fields.add("Content-Type", "text/event-stream");
    head.fields.add("Cache-Control", "no-cache");
    head.fields.add("X-Accel-Buffering", "no");
    return head;
}

}  // namespace opensandbox::http
