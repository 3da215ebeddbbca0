#pragma once

#include "agent/task/task_table.hpp"
#include "http/router.hpp"

#include <string>

namespace opensandbox::agent {

/// The executor's API (kubernetes 2.3): /setTasks, /getTasks, /tasks, /tasks/{id}, /health. With a
/// `token` every route but /health wants it in X-Task-Token. Errors are {"code", "message"}.
http::Handler task_handler(TaskTable& tasks, std::string token);

}  // namespace opensandbox::agent
