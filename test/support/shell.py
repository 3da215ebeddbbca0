"""Running programs on the host."""

import subprocess


def run(*argv, check=True, timeout=60, input=None, env=None, cwd=None):
    """Runs a program and returns it with text output; a failure shows what it wrote."""
    done = subprocess.run(
        [str(a) for a in argv],
        capture_output=True,
        text=True,
        timeout=timeout,
        input=input,
        env=env,
        cwd=cwd,
    )
    if check and done.returncode != 0:
        raise AssertionError(
            f"{' '.join(str(a) for a in argv)} ended with {done.returncode}\n"
            f"stdout: {done.stdout}\nstderr: {done.stderr}"
        )
    return done


def eventually(condition, timeout=10.0, interval=0.02, what="the condition"):
    """Waits until `condition()` is true and returns its value; fails with the last value seen."""
    import time

    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError(f"{what} did not come true within {timeout} s (last: {value!r})")
        time.sleep(interval)
