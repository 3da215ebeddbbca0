"""A terminal to type into and to look at: tmux on a socket of its own."""

import shlex
import subprocess

from support.shell import eventually


BASH = ("env", "PS1=READY> ", "HISTFILE=", "bash", "--norc", "--noprofile", "-i")


class Terminal:
    """One tmux server with one window that runs a shell, whose prompt is "READY> "."""

    def __init__(self, directory, environment, columns=100, rows=30, shell=BASH):
        self.directory = directory
        self.socket = directory / "tmux.socket"
        self.environment = {**environment, "TERM": "screen-256color"}
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "-s", "test", *shell)
        self.tmux("set-option", "-g", "status", "off")
        self.resize(columns, rows)
        self.wait_for("READY>")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server", check=False)

    def tmux(self, *argv, check=True):
        return subprocess.run(["tmux", "-S", self.socket, *argv], env=self.environment, check=check,
                              capture_output=True, text=True, timeout=30, cwd=self.directory).stdout

    def type(self, text):
        self.tmux("send-keys", "-t", "test", "-l", text)

    def press(self, *keys):
        """Keys by tmux's names: Enter, C-c, Tab."""
        self.tmux("send-keys", "-t", "test", *keys)

    def enter(self, line):
        self.type(line)
        self.press("Enter")

    def screen(self):
        return self.tmux("capture-pane", "-p", "-J", "-t", "test")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-t", "test", "-x", str(columns), "-y", str(rows))

    def wait_for(self, text, timeout=30):
        """Until `text` is on the screen; returns the screen."""
        try:
            return eventually(lambda: text in (shown := self.screen()) and shown, timeout, 0.05, text)
        except AssertionError as error:
            raise AssertionError(f"{error}\n--- the screen\n{self.screen()}") from None

    def clear(self):
        self.press("C-l")
        eventually(lambda: self.screen().strip() == "READY>", 10, 0.05, "an empty screen")

    def finish(self, line, timeout=60):
        """Runs a line to its end; returns what was on the screen, and its exit code."""
        self.clear()
        self.enter(f"{line}; echo '<''end '$?'>'")
        shown = self.wait_for("<end ", timeout)
        return shown, self.code()

    def code(self):
        screen = eventually(lambda: "<end " in (s := self.screen()) and s, 60, 0.05, "the end")
        return int(screen.rsplit("<end ", 1)[1].split(">")[0])

    def modes(self):
        """The terminal's settings, but for its size."""
        tty = self.tmux("display-message", "-p", "-t", "test", "#{pane_tty}").strip()
        return subprocess.run(["stty", "-F", tty, "-g"], check=True, capture_output=True, text=True).stdout

    @staticmethod
    def quote(*words):
        return shlex.join(map(str, words))
