#include "server/config/config.hpp"

namespace opensandbox::server {
namespace {

constexpr std::string_view kNative = R"toml(# opensandbox on one machine, nothing else needed.

[server]
host = "127.0.0.1"
port = 8080
# api_key = "change-me"          # made at the first start without this line

[log]
level = "INFO"

[runtime]
type = "native"

[native]
publish_host = "127.0.0.1"

# Sandboxes made ready ahead: always, and after bursts.
[native.pool]
size = 8
max = 128
)toml";

constexpr std::string_view kDocker =
    R"toml(# opensandbox with Docker, or Podman's compatible socket.

[server]
host = "0.0.0.0"
port = 8080
api_key = "change-me"
# eip = "sandbox.example.com"    # public host of endpoints
# max_sandbox_timeout_seconds = 86400

[log]
level = "INFO"

[runtime]
type = "docker"

[docker]
# host, bridge, or the name of a network. With host there is one sandbox, at port 44772: keep it in
# net.ipv4.ip_local_reserved_ports, or a connection of the host may have it.
network_mode = "bridge"
# host_ip = "192.0.2.1"          # public host when the server itself runs in a container
no_new_privileges = true
pids_limit = 4096
publish_host = "0.0.0.0"
port_range_min = 40000
port_range_max = 60000

[storage]
# Host directories that sandboxes may mount; none by default.
allowed_host_paths = []
)toml";

constexpr std::string_view kDockerChinese =
    R"toml(# opensandbox 使用 Docker（或 Podman 的兼容套接字）。

[server]
host = "0.0.0.0"
port = 8080
api_key = "change-me"            # 客户端通过 OPEN-SANDBOX-API-KEY 发送
# eip = "sandbox.example.com"    # 端点对外的主机名
# max_sandbox_timeout_seconds = 86400

[log]
level = "INFO"

[runtime]
type = "docker"

[docker]
# host、bridge，或已有网络的名称。host 时只有一个沙箱，使用端口 44772：
# 请写入 net.ipv4.ip_local_reserved_ports，以免被主机的连接占用。
network_mode = "bridge"
# host_ip = "192.0.2.1"          # 服务器自身在容器中运行时的对外主机
no_new_privileges = true
pids_limit = 4096
publish_host = "0.0.0.0"
port_range_min = 40000
port_range_max = 60000

[storage]
# 允许沙箱挂载的主机目录；默认一个都不允许。
allowed_host_paths = []
)toml";

}  // namespace

std::string_view example_config(std::string_view kind) {
    if (kind == "native") return kNative;
    if (kind == "docker") return kDocker;
    if (kind == "docker-zh") return kDockerChinese;
    return {};
}

}  // namespace opensandbox::server
