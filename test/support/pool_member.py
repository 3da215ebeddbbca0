"""A process of ours that shares a pool (test/package/pool_member.cpp)."""

import subprocess


class PoolMember:
    def __init__(self, programs, server, name, redis, max_idle, lock_ms=60000):
        self.process = subprocess.Popen(
            [programs / "pool_member", name, redis.url, str(max_idle), str(lock_ms)],
            env=server.environment(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        self.greeting = self.process.stdout.readline().strip()

    def ask(self, *words):
        """The answer's words."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def idle(self):
        return int(self.ask("snapshot")[1])

    def is_primary(self):
        return self.ask("snapshot")[3] == "primary"

    def kill(self):
        self.process.kill()
        self.process.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()
