"""One language server process: frames in, frames out, and its end."""

import json
import os
import queue
import select
import signal
import subprocess
import threading
import time

from translate import Failure, uri_of


def child_environment(ambient, configured):
    """What a server gets of the harness's own environment: nothing secret, nothing of ours."""
    secret = ("KEY", "PASSWORD", "SECRET", "TOKEN")
    kept = {name: value for name, value in ambient.items()
            if not name.startswith("DSH_") and not any(word in name.upper() for word in secret)}
    return {**kept, **configured}


class Server:
    """One language server process: frames in, frames out, and its end."""

    def __init__(self, config, workspace, environment):
        self.config = config
        self.dead = None  # why it cannot be used any more
        self.lock = threading.Lock()
        self.frames = queue.Queue()  # what is to be written, or to be called when its turn comes
        self.waiting = {}  # id of a request -> the queue its answer goes to
        self.last_id = 0
        self.stderr = b""
        self.ending = threading.Lock()
        self.closing = False  # whether it was asked to end, so that its end is no failure
        self.versions = {}  # URI -> the version it was opened with last
        self.folder = {"uri": uri_of(workspace), "name": os.path.basename(workspace)}
        try:
            self.process = subprocess.Popen(
                [config["executable"], *config["args"]], cwd=workspace,
                env=child_environment(environment, config["env"]), start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        except (OSError, ValueError) as error:
            raise Failure("LSP_SERVER_EXITED", f"the server cannot be started: {error}") from None
        self.output = os.fdopen(self.process.stdout.fileno(), "rb", closefd=False)
        self.threads = [threading.Thread(target=work, daemon=True)
                        for work in (self.read, self.drain, self.write, self.watch_input,
                                     self.watch_life)]
        for thread in self.threads:
            thread.start()

    # Writing

    def send(self, message):
        if self.dead:
            raise self.dead
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
        self.frames.put(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def write(self):
        """Writes in a thread of its own, so that a server that stops reading is still read from."""
        while (frame := self.frames.get()) is not None:
            try:
                if callable(frame):
                    frame()
                    continue
                while frame:
                    frame = frame[self.process.stdin.write(frame):]
            except (OSError, ValueError):
                return self.lose_input()

    def written(self, seconds):
        """Whether all that was sent so far has been written by then."""
        turn = threading.Event()
        self.frames.put(turn.set)
        return turn.wait(seconds) and not self.dead

    def notify(self, method, params=None):
        self.send({"method": method} | ({} if params is None else {"params": params}))

    def request(self, method, params, answers):
        with self.lock:
            self.last_id += 1
            number = self.last_id
            self.waiting[number] = answers
        message = {"id": number, "method": method}
        self.send(message if params is None else {**message, "params": params})
        return number

    # Reading

    def read(self):
        """Reads frames to the end, whatever else is going on."""
        try:
            while True:
                message = self.frame()
                if isinstance(message, dict):
                    self.take(message)
        except Failure as failure:
            self.die(str(failure), failure.code)
        except (OSError, ValueError) as error:
            self.die(f"its stdout cannot be read: {error}")
        if not self.closing:
            self.kill()

    def watch_input(self):
        """Notices a server that closes its stdin, which a writer is not told until it writes."""
        poll = select.poll()
        poll.register(self.process.stdin, 0)
        # Not without end: what is polled is not really closed by closing it.
        while not self.closing and not self.dead and not poll.poll(100):
            pass
        if not self.closing and not self.dead:
            self.lose_input()
            self.kill()

    def lose_input(self):
        """It may have answered before: what is in its stdout already is taken first."""
        self.threads[0].join(0.2)
        self.die("its stdin is closed")

    def watch_life(self):
        """Notices a process that is dead although a child of its own holds its stdout."""
        self.process.wait()
        self.threads[0].join(0.2)
        self.die("it ended")

    def frame(self):
        length, size = None, 0
        while True:
            line = self.output.readline(65537 - size)
            size += len(line)
            if size > 65536:
                raise Failure("LSP_PROTOCOL_ERROR", "a header section has more than 65536 bytes")
            if not line.endswith(b"\n"):
                raise Failure("LSP_SERVER_EXITED", "its stdout ended")
            if not line.endswith(b"\r\n"):
                raise Failure("LSP_PROTOCOL_ERROR", f"no header: {line[:80]!r}")
            if line == b"\r\n":
                break
            name, colon, value = line.partition(b":")
            value = value.strip(b" \t\r\n")
            if not colon or not name or set(name) & set(b" \t\"(),/:;<=>?@[\\]{}") or max(name) > 126:
                raise Failure("LSP_PROTOCOL_ERROR", f"no header: {line[:80]!r}")
            if name.lower() == b"content-length":
                if not value.isdigit() or int(value) > 2**53 or length not in (None, int(value)):
                    raise Failure("LSP_PROTOCOL_ERROR", f"no length: {line[:80]!r}")
                length = int(value)
        if not length or length > self.config["maxMessageBytes"]:
            raise Failure("LSP_PROTOCOL_ERROR", f"a body of {length} bytes is not read")
        body = self.output.read(length)
        if len(body) < length:
            raise Failure("LSP_SERVER_EXITED", "it ended inside a message")
        try:
            return json.loads(body.decode(), parse_constant=lambda name: {}[name])
        except (ValueError, KeyError, RecursionError) as error:
            raise Failure("LSP_PROTOCOL_ERROR", f"a body is not JSON: {error}") from None

    def take(self, message):
        if isinstance(message.get("method"), str):
            if isinstance(message.get("id"), (int, str)) and not isinstance(message["id"], bool):
                try:
                    self.send({"id": message["id"], **self.answer(message)})
                except Failure:
                    pass  # it is dead, which is told elsewhere
        elif isinstance(message.get("id"), int):
            with self.lock:
                answers = self.waiting.pop(message["id"], None)
            if answers:
                answers.put(("answer", message))

    def answer(self, request):
        """What the server asks of us."""
        method, params = request["method"], request.get("params") or {}
        if method == "workspace/configuration":
            items = params.get("items") if isinstance(params, dict) else None
            if not isinstance(items, list):
                return {"error": {"code": -32602, "message": "items is no list"}}
            return {"result": [self.config["configuration"]] * len(items)}
        if method == "workspace/workspaceFolders":
            return {"result": [self.folder]}
        if method == "workspace/applyEdit":
            return {"result": {"applied": False, "failureReason": "this client edits nothing"}}
        if method in ("client/registerCapability", "client/unregisterCapability",
                      "window/workDoneProgress/create"):
            return {"result": None}
        return {"error": {"code": -32601, "message": f"{method} is not supported"}}

    def drain(self):
        while piece := self.process.stderr.read(65536):
            self.stderr = (self.stderr + piece)[-self.config["maxStderrBytes"]:]

    # Ending

    def die(self, why, code="LSP_SERVER_EXITED"):
        """Fails what waits. The process is ended by whoever owns the slot."""
        if self.dead:
            return
        if code == "LSP_SERVER_EXITED":
            why = f"{why}; {self.how_it_ended()}"
        with self.lock:
            self.dead = self.dead or Failure(code, f"the language server failed: {why}")
            waiting, self.waiting = self.waiting, {}
        for answers in waiting.values():
            answers.put(("dead", self.dead))
        self.frames.put(None)

    def how_it_ended(self):
        try:
            status = self.process.wait(0.2)
            self.threads[1].join(0.5)
            status = f"exit code {status}" if status >= 0 else f"signal {-status}"
        except subprocess.TimeoutExpired:
            status = "it still runs"
        tail = self.stderr
        while tail and 0x80 <= tail[0] < 0xC0:
            tail = tail[1:]  # the rest of a character whose begin was dropped
        return f"{status}; stderr: {tail.decode(errors='replace')}"

    def signal_group(self, number):
        try:
            os.killpg(self.process.pid, number)
            return True
        except (ProcessLookupError, PermissionError):
            return False

    def kill(self):
        """SIGTERM to the group, SIGKILL after the grace, and waits until all of it is gone."""
        with self.ending:
            self.die("it was ended")
            left = self.config["killGraceMs"]
            self.signal_group(signal.SIGTERM)
            while self.signal_group(0) and left > 0:
                self.process.poll()
                time.sleep(0.01)
                left -= 10
            self.signal_group(signal.SIGKILL)
            self.process.wait()
            while self.signal_group(0):
                time.sleep(0.01)

    def usable(self):
        """Whether it can be asked; one that died a moment ago is noticed before it fails a query."""
        poll = select.poll()
        poll.register(self.process.stdin, 0)
        poll.register(self.process.stdout, 0)
        return not self.dead and not poll.poll(0) and self.process.poll() is None

    def end(self):
        """Kills what is left, and gives back everything that was held for it."""
        self.kill()
        for thread in self.threads:
            thread.join(1)
        self.output.close()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except OSError:
                pass

    def shut_down(self):
        """`shutdown`, `exit`, the end of its input, and whatever more it takes."""
        self.closing = True
        budget = self.config["shutdownTimeoutMs"] / 1000
        watch = threading.Timer(budget, self.signal_group, [signal.SIGTERM])
        watch.start()
        try:
            answers = queue.Queue()
            self.request("shutdown", None, answers)
            if answers.get(timeout=budget)[0] == "answer":
                self.notify("exit")
                self.process.wait(min(0.5, budget))
        except (Failure, queue.Empty, subprocess.TimeoutExpired):
            pass
        try:
            self.frames.put(self.process.stdin.close)
            self.process.wait(budget)
        except (OSError, subprocess.TimeoutExpired):
            pass
        watch.cancel()
        self.end()
