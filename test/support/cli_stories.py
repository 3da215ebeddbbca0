"""Calls of the command line, in the order in which one needs what another made: ours and the published
one are told them alike (conformance/cli_shapes.py)."""

import json


class Row:
    """One call. `keeps`: what later rows name, and the member that has it. `until`: asked again
    until that holds."""

    def __init__(self, *argv, name=None, input=None, keeps=None, code=0, until=None, format="json"):
        self.argv, self.input, self.keeps, self.code = argv, input, keeps or {}, code
        self.until, self.format = until, format
        nested = argv[1] in ("session", "credential", "binding")
        self.name = name or " ".join(argv[:3 if nested else 2])


def raw(*argv, **options):
    return Row(*argv, format=None, **options)


STORIES = {
    "sandbox": [
        Row("sandbox", "create", "-i", "host", "-t", "10m", "-e", "A=1", "-m", "by={me}", "--resource",
            "cpu=1", "--resource", "memory=512Mi", "--entrypoint", "sleep", "--entrypoint", "600",
            keeps={"id": "id"}),
        Row("sandbox", "create", "-f", "{dir}/body.json", name="sandbox create from a file",
            keeps={"other": "id"}),
        Row("sandbox", "list", "-m", "by={me}", "-s", "running", "--page", "1", "--page-size", "5"),
        Row("sandbox", "list", "-m", "by=nobody", name="sandbox list of nothing"),
        Row("sandbox", "get", "{id}"),
        Row("sandbox", "renew", "{id}", "-t", "1h"),
        Row("sandbox", "endpoint", "{id}", "-p", "8080"),
        Row("sandbox", "health", "{id}"),
        Row("sandbox", "metrics", "{id}"),
        Row("sandbox", "pause", "{id}"),
        Row("sandbox", "get", "{id}", name="sandbox get of a paused one"),
        Row("sandbox", "resume", "{id}", "--resume-timeout", "30s"),
        Row("diagnostics", "logs", "{id}", "-s", "container"),
        Row("diagnostics", "logs", "{id}", "-s", "all", name="diagnostics logs of all"),
        Row("diagnostics", "events", "{id}", "-s", "runtime"),
        Row("sandbox", "kill", "{id}", "{other}"),
        Row("sandbox", "get", "{id}", name="sandbox get of none", code=1),
    ],
    "command": [
        raw("command", "run", "{sandbox}", "--", "printf", "%s\\n", "a b", "$HOME"),
        raw("command", "run", "{sandbox}", "--argv", "-w", "/usr", "--", "pwd", name="command run --argv"),
        Row("command", "run", "{sandbox}", "-d", "--", "echo", "hello", name="command run -d",
            keeps={"execution": "execution_id"}),
        Row("command", "status", "{sandbox}", "{execution}", until=lambda d: d["running"] is False),
        Row("command", "logs", "{sandbox}", "{execution}"),
        Row("command", "run", "{sandbox}", "-d", "--", "sleep", "600", name="command run -d again",
            keeps={"execution": "execution_id"}),
        Row("command", "status", "{sandbox}", "{execution}", name="command status of one that runs"),
        Row("command", "interrupt", "{sandbox}", "{execution}"),
        Row("command", "session", "create", "{sandbox}", "-w", "/tmp", keeps={"session": "session_id"}),
        raw("command", "session", "run", "{sandbox}", "{session}", "--", "cd", "/usr"),
        raw("command", "session", "run", "{sandbox}", "{session}", "--", "pwd"),
        raw("command", "session", "run", "{sandbox}", "{session}", "-w", "/etc", "-t", "30s", "--", "pwd"),
        Row("command", "session", "delete", "{sandbox}", "{session}"),
        Row("command", "session", "create", "{sandbox}", name="command session create nowhere",
            keeps={"session": "session_id"}),
        Row("command", "session", "delete", "{sandbox}", "{session}"),
    ],
    "file": [
        Row("file", "mkdir", "{sandbox}", "/tmp/{me}/a", "/tmp/{me}/b", "--mode", "750"),
        Row("file", "write", "{sandbox}", "/tmp/{me}/a/x", "-c", "hello", "--mode", "640"),
        Row("file", "write", "{sandbox}", "/tmp/{me}/a/y", name="file write from standard input",
            input="text"),
        Row("file", "upload", "{sandbox}", "{dir}/local", "/tmp/{me}/b/z"),
        Row("file", "download", "{sandbox}", "/tmp/{me}/b/z", "{dir}/back"),
        raw("file", "cat", "{sandbox}", "/tmp/{me}/a/x"),
        Row("file", "info", "{sandbox}", "/tmp/{me}/a", "/tmp/{me}/a/x"),
        Row("file", "search", "{sandbox}", "/tmp/{me}", "-p", "*"),
        Row("file", "search", "{sandbox}", "/tmp/{me}", "-p", "none", name="file search of nothing"),
        Row("file", "replace", "{sandbox}", "/tmp/{me}/a/x", "--old", "hello", "--new", "bye"),
        Row("file", "chmod", "{sandbox}", "/tmp/{me}/a/x", "--mode", "600"),
        Row("file", "mv", "{sandbox}", "/tmp/{me}/a/x", "/tmp/{me}/b/x"),
        Row("file", "rm", "{sandbox}", "/tmp/{me}/a/y", "/tmp/{me}/b/x"),
        Row("file", "rmdir", "{sandbox}", "/tmp/{me}/a", "/tmp/{me}/b"),
        Row("file", "info", "{sandbox}", "/tmp/{me}/a", name="file info of none", code=1),
    ],
    "snapshot": [
        Row("snapshot", "create", "{sandbox}", "--name", "of-{me}", keeps={"snapshot": "id"}),
        Row("snapshot", "get", "{snapshot}", until=lambda d: d["status"]["state"] == "Ready"),
        Row("snapshot", "list", "--sandbox-id", "{sandbox}", "--name", "of-{me}", "--state", "Ready",
            "--page", "1", "--page-size", "10"),
        Row("snapshot", "list", "--name", "none", name="snapshot list of nothing"),
        Row("sandbox", "create", "--snapshot-id", "{snapshot}", name="sandbox create from a snapshot",
            keeps={"id": "id"}),
        Row("sandbox", "get", "{id}", name="sandbox get of one from a snapshot"),
        Row("sandbox", "kill", "{id}"),
        Row("snapshot", "delete", "{snapshot}"),
        Row("snapshot", "get", "{snapshot}", name="snapshot get of none", code=1),
    ],
    "egress": [
        Row("sandbox", "create", "-i", "host", "--network-policy-file", "{dir}/policy.json",
            "--credential-proxy", name="sandbox create with a policy", keeps={"id": "id"}),
        Row("egress", "get", "{id}"),
        Row("egress", "patch", "{id}", "--rule", "allow=other.example", "--rule", "DENY=bad.example"),
        Row("credential-vault", "create", "{id}", "--file", "{dir}/vault.yaml"),
        Row("credential-vault", "get", "{id}"),
        Row("credential-vault", "credential", "list", "{id}"),
        Row("credential-vault", "credential", "get", "{id}", "key"),
        Row("credential-vault", "binding", "list", "{id}"),
        Row("credential-vault", "binding", "get", "{id}", "api"),
        Row("credential-vault", "binding", "get", "{id}", "header",
            name="credential-vault binding get apiKey"),
        Row("credential-vault", "create", "{id}", "--file", "{dir}/vault.yaml", name="a second vault",
            code=1),
        Row("credential-vault", "patch", "{id}", "--file", "-", input=json.dumps(
            {"expectedRevision": 1, "bindings": {"delete": ["api", "header"]},
             "credentials": {"delete": ["key"]}})),
        Row("credential-vault", "binding", "list", "{id}", name="credential-vault binding list of nothing"),
        Row("credential-vault", "delete", "{id}"),
        Row("credential-vault", "get", "{id}", name="credential-vault get of none", code=1),
        Row("sandbox", "kill", "{id}"),
    ],
    "config": [
        Row("config", "init"),
        Row("config", "set", "defaults.image", "host"),
        Row("config", "set", "connection.request_timeout", "20"),
        Row("config", "show"),
    ],
    "template": [
        Row("template", "create", "-i", "a:1", "-p", "s3://b/p", keeps={"id": "template_id"}),
        Row("template", "get", "{id}"),
        Row("template", "create", "-i", "a:1", "-p", "s3://b/p", "--resource", "cpu=1", "--entrypoint", "x",
            "-e", "A=1", "-m", "by={me}", "--format", "native", "--readiness-probe", "tcp://127.0.0.1:1",
            "--warmup-seconds", "3", name="template create of everything", keeps={"id": "template_id"}),
        Row("template", "get", "{id}", name="template get of everything"),
        Row("template", "create", "-f", "{dir}/template.json", name="template create from a file"),
        Row("template", "list", "-m", "by={me}", "--page", "1", "--page-size", "10"),
        Row("template", "list", "-m", "by=nobody", name="template list of nothing"),
        Row("template", "delete", "{id}"),
        Row("template", "get", "{id}", name="template get of none", code=1),
    ],
}
