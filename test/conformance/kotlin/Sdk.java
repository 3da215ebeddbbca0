import com.alibaba.opensandbox.sandbox.Sandbox;
import com.alibaba.opensandbox.sandbox.SandboxManager;
import com.alibaba.opensandbox.sandbox.config.ConnectionConfig;
import com.alibaba.opensandbox.sandbox.domain.exceptions.SandboxApiException;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.Execution;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.ExecutionHandlers;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.OutputMessage;
import com.alibaba.opensandbox.sandbox.domain.models.execd.executions.RunCommandRequest;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.ContentReplaceEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.MoveEntry;
import com.alibaba.opensandbox.sandbox.domain.models.execd.filesystem.SearchEntry;
import com.alibaba.opensandbox.sandbox.domain.models.sandboxes.SandboxFilter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** The published Kotlin SDK, unmodified, from Java: one sandbox, everything that it offers. */
public final class Sdk {
    static final ConnectionConfig CONNECTION = ConnectionConfig.builder()
            .domain(System.getenv("OPEN_SANDBOX_DOMAIN"))
            .apiKey(System.getenv("OPEN_SANDBOX_API_KEY"))
            .requestTimeout(Duration.ofSeconds(60))
            .build();

    static void same(Object expected, Object seen) {
        if (!expected.equals(seen)) throw new AssertionError("expected " + expected + ", seen " + seen);
    }

    static String text(List<OutputMessage> messages) {
        StringBuilder all = new StringBuilder();
        for (OutputMessage message : messages) all.append(message.getText()).append('|');
        return all.toString();
    }

    static void commands(Sandbox sandbox) {
        List<String> streamed = new ArrayList<>();
        Execution done = sandbox.commands().run(RunCommandRequest.builder()
                .command("echo one; echo two; echo three >&2; pwd")
                .workingDirectory("/tmp")
                .handlers(ExecutionHandlers.builder().onStdout(m -> streamed.add(m.getText())).build())
                .build());
        // One event a line and no terminators: the form that this version was written for.
        same("one|two|/tmp|", text(done.getLogs().getStdout()));
        same("three|", text(done.getLogs().getStderr()));
        same(List.of("one", "two", "/tmp"), streamed);
        same(true, done.getError() == null);
        Execution failed = sandbox.commands().run("exit 3");
        same(true, failed.getError() != null);
        same("3", failed.getError().getValue());
    }

    static void files(Sandbox sandbox) {
        var files = sandbox.files();
        files.writeFile("/tmp/kt/a.txt", "first line\nsecond");
        same("first line\nsecond", files.readFile("/tmp/kt/a.txt"));
        same(17, files.readByteArray("/tmp/kt/a.txt").length);
        same(17L, files.readFileInfo(List.of("/tmp/kt/a.txt")).get("/tmp/kt/a.txt").getSize());
        files.replaceContents(List.of(ContentReplaceEntry.builder()
                .path("/tmp/kt/a.txt").oldContent("first").newContent("new").build()));
        same("new line\nsecond", files.readFile("/tmp/kt/a.txt"));
        files.moveFiles(List.of(MoveEntry.builder().src("/tmp/kt/a.txt").dest("/tmp/kt/b.txt").build()));
        var found = files.search(SearchEntry.builder().path("/tmp/kt").pattern("*.txt").build());
        same(1, found.size());
        same("/tmp/kt/b.txt", found.get(0).getPath());
        files.deleteFiles(List.of("/tmp/kt/b.txt"));
        same(0, files.search(SearchEntry.builder().path("/tmp/kt").pattern("*.txt").build()).size());
        files.deleteDirectories(List.of("/tmp/kt"));
    }

    static void life(Sandbox sandbox) {
        same("Running", sandbox.getInfo().getStatus().getState());
        same("kotlin", sandbox.getInfo().getMetadata().get("client"));
        same(true, sandbox.isHealthy());
        same(true, sandbox.getMetrics().getMemoryTotalInMiB() > 1);
        var before = sandbox.getInfo().getExpiresAt();
        sandbox.renew(Duration.ofMinutes(30));
        same(true, sandbox.getInfo().getExpiresAt().isAfter(before));
        sandbox.pause();
        same("Paused", sandbox.getInfo().getStatus().getState());
        sandbox.resume();
        same("Running", sandbox.getInfo().getStatus().getState());
        sandbox.checkReady(Duration.ofSeconds(30), Duration.ofMillis(200));
        try (Sandbox again = Sandbox.connector().sandboxId(sandbox.getId()).connectionConfig(CONNECTION).connect()) {
            same("still|", text(again.commands().run("echo still").getLogs().getStdout()));
        }
    }

    static void list(Sandbox sandbox) {
        try (SandboxManager manager = SandboxManager.builder().connectionConfig(CONNECTION).build()) {
            var page = manager.listSandboxInfos(SandboxFilter.builder()
                    .metadata(Map.of("client", "kotlin")).states("Running").pageSize(10).page(1).build());
            same(1, page.getSandboxInfos().size());
            same(sandbox.getId(), page.getSandboxInfos().get(0).getId());
            try {
                manager.getSandboxInfo(UUID.randomUUID());
                throw new AssertionError("an unknown sandbox was found");
            } catch (SandboxApiException error) {
                same(404, error.getStatusCode());
            }
        }
    }

    public static void main(String[] arguments) {
        Sandbox sandbox = Sandbox.builder().image(System.getenv("IMAGE")).metadata("client", "kotlin")
                .env("FROM", "kotlin").timeout(Duration.ofMinutes(5)).connectionConfig(CONNECTION).build();
        try {
            same("kotlin|", text(sandbox.commands().run("echo $FROM").getLogs().getStdout()));
            commands(sandbox);
            files(sandbox);
            life(sandbox);
            list(sandbox);
        } finally {
            sandbox.kill();
            sandbox.close();
        }
        System.out.println("passed");
    }
}
