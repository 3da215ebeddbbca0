import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.BufferedInputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;

/** Runs the cells of one context with JShell's own engine, in this process. Descriptor 3 is the
 * channel to the agent. */
public class JavaDriver {
    private static final String[] IMPORTS = {
        "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*",
        "java.util.concurrent.*", "java.util.function.*", "java.util.regex.*", "java.util.stream.*",
    };

    private static final int MAX_VALUE = 2 << 20;

    private final InputStream input;
    private final OutputStream output;
    private final JShell shell;
    private volatile int count;
    private volatile boolean running;
    private volatile boolean interrupted;

    private JavaDriver() throws Exception {
        var constructor = FileDescriptor.class.getDeclaredConstructor(int.class);
        constructor.setAccessible(true);
        FileDescriptor channel = constructor.newInstance(3);
        input = new BufferedInputStream(new FileInputStream(channel));
        output = new FileOutputStream(channel);
        shell = JShell.builder().executionEngine("local").out(System.out).err(System.err).build();
    }

    public static void main(String[] arguments) throws Exception {
        JavaDriver driver = new JavaDriver();
        sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> driver.interrupt());
        for (String name : IMPORTS) driver.shell.eval("import " + name + ";");
        driver.send("{\"type\":\"ready\"}");
        for (String code = driver.receive(); code != null; code = driver.receive()) {
            driver.run(code);
        }
        // Threads of cells may still run.
        Runtime.getRuntime().halt(0);
    }

    /** Again and again: what is being compiled cannot be stopped, only what runs then. */
    private void interrupt() {
        int cell = count;
        interrupted = running;
        while (running && count == cell) {
            stop();
            try {
                Thread.sleep(50);
            } catch (InterruptedException ignored) {
                return;
            }
        }
    }

    private void stop() {
        try {
            shell.stop();
        } catch (Throwable unsupported) {
            // Newer machines cannot stop a thread: what waits can still be woken.
        }
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            ThreadGroup group = thread.getThreadGroup();
            if (group != null && group.getName().startsWith("JShell")) thread.interrupt();
        }
    }

    private void run(String code) throws IOException {
        count += 1;
        interrupted = false;
        running = true;
        String failure;
        String value = null;
        try {
            List<SnippetEvent> last = new ArrayList<>();
            failure = evaluate(code, last);
            if (failure == null && !last.isEmpty()) value = valueOf(last.get(last.size() - 1));
        } catch (Throwable problem) {
            failure = error(problem.getClass().getSimpleName(), String.valueOf(problem.getMessage()),
                            List.of(String.valueOf(problem)));
        }
        running = false;
        System.out.flush();
        System.err.flush();
        if (interrupted) {
            failure = error("KeyboardInterrupt", "the run was interrupted",
                            List.of("KeyboardInterrupt: the run was interrupted"));
        }
        if (failure != null) {
            send(failure);
        } else if (value != null) {
            send("{\"type\":\"result\",\"count\":" + count + ",\"data\":{\"text/plain\":"
                 + quote(value) + "}}");
        }
        send("{\"type\":\"done\"}");
    }

    /** Runs snippet after snippet; the error of the first one that fails, or null. */
    private String evaluate(String code, List<SnippetEvent> last) {
        SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
        String rest = code;
        while (!rest.isBlank()) {
            SourceCodeAnalysis.CompletionInfo info = analysis.analyzeCompletion(rest);
            if (info.completeness() == SourceCodeAnalysis.Completeness.EMPTY) return null;
            boolean whole = info.completeness().isComplete();
            List<SnippetEvent> events = shell.eval(whole ? info.source() : rest);
            if (interrupted) return null;
            last.clear();
            for (SnippetEvent event : events) {
                if (event.causeSnippet() != null) continue;
                String failure = failureOf(event);
                if (failure != null) return failure;
                last.add(event);
            }
            if (!whole) return null;
            rest = info.remaining();
        }
        return null;
    }

    private String failureOf(SnippetEvent event) {
        if (event.exception() != null) return failureOf(event.exception());
        if (event.status() != Snippet.Status.REJECTED) return null;
        List<String> lines = new ArrayList<>();
        String source = event.snippet().source();
        shell.diagnostics(event.snippet()).filter(Diag::isError).forEach(diagnostic -> {
            for (String line : diagnostic.getMessage(Locale.ROOT).split("\\R")) lines.add(line);
            lines.add(lineAt(source, diagnostic.getPosition()));
        });
        String message = lines.isEmpty() ? "the snippet was rejected" : lines.get(0);
        return error("CompilationException", message, lines);
    }

    private static String lineAt(String source, long position) {
        int at = (int) Math.max(0, Math.min(position, source.length()));
        int begin = source.lastIndexOf('\n', Math.max(0, at - 1)) + 1;
        int end = source.indexOf('\n', at);
        return "|  " + source.substring(Math.min(begin, at), end < 0 ? source.length() : end);
    }

    private static String failureOf(JShellException exception) {
        String name = exception.getClass().getSimpleName();
        String message = exception.getMessage();
        List<String> lines = new ArrayList<>();
        if (exception instanceof EvalException) {
            name = "EvalException";
            String kind = ((EvalException) exception).getExceptionClassName();
            message = message == null ? kind : kind + ": " + message;
        }
        lines.add(String.valueOf(message));
        for (StackTraceElement frame : exception.getStackTrace()) {
            String where = frame.getFileName() == null ? "" : frame.getFileName() + ":";
            lines.add("    at " + frame.getMethodName() + "(" + where + frame.getLineNumber() + ")");
        }
        return error(name, String.valueOf(message), lines);
    }

    /** The value of an expression; null for declarations, assignments and nothing. */
    private static String valueOf(SnippetEvent event) {
        Snippet snippet = event.snippet();
        if (snippet.kind() != Snippet.Kind.EXPRESSION
            && snippet.subKind() != Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND) {
            return null;
        }
        if (snippet.subKind() == Snippet.SubKind.ASSIGNMENT_SUBKIND) return null;
        String value = event.value();
        if (value == null || value.isEmpty()) return null;
        // A character takes up to six bytes in a frame.
        return value.length() <= MAX_VALUE ? value : value.substring(0, MAX_VALUE) + "...";
    }

    private static String error(String name, String value, List<String> lines) {
        StringBuilder out = new StringBuilder("{\"type\":\"error\",\"ename\":");
        out.append(quote(name)).append(",\"evalue\":").append(quote(value));
        out.append(",\"traceback\":[");
        for (int i = 0; i < lines.size(); i++) {
            out.append(i == 0 ? "" : ",").append(quote(lines.get(i)));
        }
        return out.append("]}").toString();
    }

    private static String quote(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    private synchronized void send(String message) throws IOException {
        byte[] body = message.getBytes(StandardCharsets.US_ASCII);
        byte[] header = ("j" + body.length + "\n").getBytes(StandardCharsets.US_ASCII);
        byte[] frame = new byte[header.length + body.length];
        System.arraycopy(header, 0, frame, 0, header.length);
        System.arraycopy(body, 0, frame, header.length, body.length);
        output.write(frame);
    }

    /** The code of the next frame; null at the end of the channel. */
    private String receive() throws IOException {
        StringBuilder header = new StringBuilder();
        for (int c = input.read(); c != '\n'; c = input.read()) {
            if (c < 0) return null;
            header.append((char) c);
        }
        byte[] body = input.readNBytes(Integer.parseInt(header.substring(1)));
        return new String(body, StandardCharsets.UTF_8);
    }
}
