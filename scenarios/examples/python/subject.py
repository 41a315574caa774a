#!/usr/bin/env python3
"""A small harness for language servers, and the subject protocol around it.

It is an example to start from: a client of its own, in nothing but the standard library, that opens
a document for one question, asks, and closes it again. The scenario suite judges it by what it
claims; `subject.yaml` says how it is started and what it is known not to do.

`client.py` is one language server process, `translate.py` what comes back from it. Here are `Job`,
one query; `Slot`, the queue of one workspace with the thread that works it off; `Harness`, what is
mounted; and `main`, which speaks the protocol.
"""

import json
import os
import queue
import shutil
import signal
import sys
import threading

from client import Server
from translate import (Failure, METHODS, encoding_fits, hover, locations, read_source, sync_fits,
                       uri_of)

DEFAULTS = {"args": [], "env": {}, "initializationOptions": None, "configuration": None,
            "retryStale": 0, "announceConfiguration": False, "versions": "fixed"}
SIZES = {"maxMessageBytes": 16_000_000, "maxStderrBytes": 1_000_000, "maxDocumentBytes": 4_000_000}
BUDGETS = {"shutdownTimeoutMs": 5000, "killGraceMs": 2000}


class Job:
    """One query: what was asked, and the way its outcome goes back."""

    def __init__(self, params, reply):
        self.params = params
        self.reply = reply
        self.lock = threading.Lock()
        self.settled = False
        self.over = threading.Event()  # the slot has finished with it
        self.given_up = None  # the failure it was given up with
        self.events = queue.Queue()  # what its slot waits for: answers, deaths, "stop"

    def settle(self, outcome):
        """Answers the caller, once."""
        with self.lock:
            first, self.settled = not self.settled, True
        if first:
            self.reply(outcome)

    def give_up(self, failure):
        """Releases the caller at once; the slot cleans up behind it."""
        with self.lock:
            if self.settled or self.given_up:
                return
            self.given_up = failure
        self.settle(failure)
        self.events.put(("stop", None))


class Slot:
    """The queries to one server about one workspace, one after the other."""

    def __init__(self, config, workspace, environment):
        self.config, self.workspace, self.environment = config, workspace, environment
        self.server = None
        self.jobs = queue.Queue()
        self.current = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while (job := self.jobs.get()) is not None:
            self.current = job
            try:
                self.serve(job)
            except Failure as failure:
                job.settle(failure)
            except Exception as error:  # a fault of ours is told, and ends nothing else
                job.settle(Failure("INTERNAL", f"{type(error).__name__}: {error}"))
            job.over.set()
            if self.server and self.server.dead:
                self.drop_server()
        if self.server:
            self.server.shut_down()

    def drop_server(self):
        server, self.server = self.server, None
        server.end()

    def serve(self, job):
        if job.given_up:
            raise job.given_up
        path, text = read_source(self.workspace, job.params["filePath"], self.config)
        idle = self.server
        if idle and not idle.usable():
            self.drop_server()
        method, document = self.opened(job, path, text)
        if self.server is idle and not self.server.written(0.05) and self.server.dead:
            # It died before the document reached it, so nothing is asked twice.
            self.drop_server()
            method, document = self.opened(job, path, text)
        try:
            job.settle(self.outcome(job, method, document))
        except Failure as failure:
            job.settle(failure)
        if self.server.dead:
            return
        # The caller has its outcome. A server that does not take the close has only so long.
        try:
            self.server.notify("textDocument/didClose", {"textDocument": document})
            grace = self.config["killGraceMs"] / 1000
            if not self.server.written(min(grace, 0.5) if job.given_up else grace):
                self.server.die("it does not take the close of a document")
        except Failure:
            pass  # it is replaced

    def opened(self, job, path, text):
        """Opens the document, in a new server where there is none."""
        if not self.server:
            self.server = Server(self.config, self.workspace, self.environment)
            self.shake_hands(job)
        method, capability = METHODS[job.params["operation"]]
        if self.capabilities.get(capability) in (None, False):
            raise Failure("LSP_UNSUPPORTED_OPERATION", f"the server does not support {method}")
        if not sync_fits(self.capabilities.get("textDocumentSync")):
            raise Failure("LSP_UNSUPPORTED_OPERATION", "the server wants no documents opened")
        if job.given_up:
            raise job.given_up
        document, version = {"uri": uri_of(path)}, 1
        if self.config["versions"] == "rising":
            version += self.server.versions.get(path, 0)
            self.server.versions[path] = version
        self.server.notify("textDocument/didOpen", {"textDocument": {
            **document, "languageId": job.language, "version": version, "text": text}})
        return method, document

    def outcome(self, job, method, document):
        params = {"textDocument": document, "position": job.params["position"]}
        if method == "textDocument/references":
            params["context"] = {"includeDeclaration": True}
        for left in range(self.config["retryStale"], -1, -1):
            try:
                result = self.ask(job, method, params)
                break
            except Failure as failure:
                if failure.code != "LSP_STALE" or left == 0 or job.given_up:
                    raise
        if method == "textDocument/hover":
            return {"kind": "hover", "hover": hover(result)}
        return {"kind": "locations", "locations": locations(result),
                "resolvedWorkspaceUri": uri_of(self.workspace)}

    def ask(self, job, method, params):
        """One request. A caller that gives up has it cancelled; its grace is kept by a timer."""
        if job.given_up:
            raise job.given_up
        number = self.server.request(method, params, job.events)
        while True:
            kind, what = job.events.get()
            if kind == "dead":
                raise what
            if kind == "stop":
                if self.server.written(0.5):
                    self.server.notify("$/cancelRequest", {"id": number})
                else:
                    self.server.die("what was sent to it is half written")
                continue
            if "error" in what and what.get("result") is None:
                error = what["error"] if isinstance(what["error"], dict) else {}
                raise Failure.of_server(error)
            if "result" not in what:
                raise Failure("LSP_MALFORMED_RESPONSE", "the answer has no result")
            return what["result"]

    def shake_hands(self, job):
        server, folder = self.server, self.server.folder
        params = {
            "processId": None, "rootUri": folder["uri"], "workspaceFolders": [folder],
            "capabilities": {
                "general": {"positionEncodings": ["utf-16"]},
                "workspace": {"workspaceFolders": True, "configuration": True},
                "textDocument": {
                    "hover": {"contentFormat": ["markdown", "plaintext"]},
                    "definition": {"linkSupport": True},
                    "implementation": {"linkSupport": True}}}}
        if self.config["initializationOptions"] is not None:
            params["initializationOptions"] = self.config["initializationOptions"]
        server.request("initialize", params, job.events)
        kind, what = job.events.get()
        if kind != "answer":
            failure = job.given_up if kind == "stop" else what
            server.die("its handshake was given up")
            raise failure
        result = what.get("result")
        capabilities = result.get("capabilities") if isinstance(result, dict) else None
        if not isinstance(capabilities, dict) or not encoding_fits(capabilities):
            failure = Failure("LSP_PROTOCOL_ERROR", f"initialize was answered with {what}"[:500])
            server.die(str(failure), failure.code)
            raise failure
        server.notify("initialized", {})
        if self.config["announceConfiguration"]:
            settings = {"settings": self.config["configuration"]}
            server.notify("workspace/didChangeConfiguration", settings)
        self.capabilities = capabilities

    def give_up(self, job, failure):
        job.give_up(failure)
        # Whatever the slot is doing for it, it has the grace to come to an end.
        def enough():
            server = self.server
            if self.current is job and not job.over.is_set() and server:
                server.kill()
        timer = threading.Timer(self.config["killGraceMs"] / 1000, enough)
        timer.daemon = True
        timer.start()

    def close(self):
        """Nothing more is taken; what waits and what runs is given up."""
        waiting = []
        while not self.jobs.empty():
            waiting.append(self.jobs.get())
        self.jobs.put(None)
        for job in waiting + [self.current]:
            if job and not job.over.is_set():
                self.give_up(job, Failure("LSP_DISPOSED", "the harness is disposed"))


def extension(path):
    """The final extension, in lower case, with its dot; none for `Makefile` and `.bashrc`."""
    name = path.replace("\\", "/").rpartition("/")[2]
    stem, dot, last = name.rpartition(".")
    return dot + last.lower() if stem and last else None


class Harness:
    """What is mounted: the configured servers, and a slot for each and each workspace."""

    def __init__(self, host, environment):
        self.environment = environment
        self.by_extension = {}  # extension -> (provider id, its configuration)
        self.slots = {}  # (provider id, canonical workspace) -> slot
        self.closed = False
        servers = host.get("servers") if isinstance(host, dict) else None
        if not isinstance(servers, dict) or not servers or set(host) != {"servers"}:
            raise Failure("LSP_CONFIG_INVALID", "the configuration is {servers: {id: ...}}")
        for provider, given in servers.items():
            config = self.configured(provider, given)
            for known in config["extensionToLanguage"]:
                if known in self.by_extension:
                    raise Failure("LSP_CONFLICT", f"{known} belongs to two servers")
                self.by_extension[known] = (provider, config)

    def configured(self, provider, given):
        def wrong(key, what):
            return Failure("LSP_CONFIG_INVALID", f"servers.{provider}.{key} {what}")
        if not provider.strip() or not isinstance(given, dict):
            raise wrong("", "is no server")
        for key in set(given) - {"command", "extensionToLanguage", *DEFAULTS, *SIZES, *BUDGETS}:
            raise wrong(key, "is not known")
        config = {**DEFAULTS, **SIZES, **BUDGETS, **given}
        for key in (*SIZES, *BUDGETS):
            most = 2**31 - 1 if key in BUDGETS else 2**63
            if type(config[key]) is not int or not 0 < config[key] <= most:
                raise wrong(key, f"must be a positive integer of at most {most}")
        texts = lambda values: all(isinstance(value, str) for value in values)
        if not isinstance(config["args"], list) or not texts(config["args"]):
            raise wrong("args", "must be a list of strings")
        if not isinstance(config["env"], dict) or not texts(config["env"].values()):
            raise wrong("env", "must be a map of strings")
        command, path = config.get("command"), {**self.environment, **config["env"]}.get("PATH", "")
        if not isinstance(command, str) or not command or ("/" in command) != (command[:1] == "/"):
            raise wrong("command", "must be an absolute path, or a name on PATH")
        path = os.pathsep.join(part for part in path.split(os.pathsep) if part)
        config["executable"] = shutil.which(command, path=path or "/nowhere")
        if not config["executable"]:
            raise wrong("command", f"{command!r} was not found, or cannot be run")
        if not isinstance(config.get("extensionToLanguage"), dict):
            raise wrong("extensionToLanguage", "must be a map of extensions")
        languages = {}
        for name, language in config["extensionToLanguage"].items():
            key = "." + name.lower().removeprefix(".")
            if len(key) < 2 or set(key[1:]) & set("./\\") or not language.strip() or key in languages:
                raise Failure("LSP_INVALID_PROVIDER", f"server {provider!r}: extension {name!r}")
            languages[key] = language
        if not languages:
            raise Failure("LSP_INVALID_PROVIDER", f"server {provider!r} has no extension")
        return {**config, "extensionToLanguage": languages}

    def query(self, job):
        params = job.params
        if params.get("operation") not in METHODS:
            raise Failure("INVALID_PARAMS", f"there is no operation {params.get('operation')!r}")
        if params.get("cancelled"):
            raise Failure("LSP_CANCELLED", "the query was cancelled by its caller")
        kind = extension(params["filePath"])
        if self.closed or kind not in self.by_extension:
            raise Failure("LSP_UNAVAILABLE", f"no language server serves {kind} files")
        provider, config = self.by_extension[kind]
        workspace = os.path.realpath(params["workspaceRoot"])
        if not os.path.isabs(params["workspaceRoot"]) or not os.path.isdir(workspace):
            raise Failure("LSP_SOURCE_REJECTED", f"{params['workspaceRoot']!r} is no directory")
        job.language = config["extensionToLanguage"][kind]
        key = (provider, workspace)
        if key not in self.slots:
            self.slots[key] = Slot(config, workspace, self.environment)
        job.slot = self.slots[key]
        job.slot.jobs.put(job)

    def close(self):
        self.closed = True
        for slot in self.slots.values():
            slot.close()

    def wait(self):
        for slot in self.slots.values():
            slot.thread.join()

    def kill(self):
        for slot in self.slots.values():
            if slot.server:
                slot.server.signal_group(signal.SIGKILL)


class Subject:
    """The protocol: one JSON object a line in, one a line out."""

    def __init__(self):
        self.harness = None
        self.jobs = {}
        self.writing = threading.Lock()

    def answer(self, number, outcome):
        self.jobs.pop(number, None)
        if isinstance(outcome, Failure):
            error = {"code": -32000, "message": str(outcome), "data": outcome.data()}
            message = {"jsonrpc": "2.0", "id": number, "error": error}
        else:
            message = {"jsonrpc": "2.0", "id": number, "result": outcome}
        with self.writing:
            print(json.dumps(message), flush=True)

    def take(self, message):
        method, params = message["method"], message.get("params") or {}
        if method == "cancel":
            job = self.jobs.get(params["id"])
            if job:
                how = {"timeout": "timed out"}.get(params.get("reason"), "cancelled by its caller")
                job.slot.give_up(job, Failure("LSP_CANCELLED", f"the query was {how}"))
            return
        number = message["id"]
        try:
            if method == "query":
                self.query(number, params)
            elif method == "unmount":
                self.unmount(number)
            else:
                self.answer(number, self.at_once(method, params))
        except Failure as failure:
            self.answer(number, failure)

    def at_once(self, method, params):
        if method == "describe":
            return {"name": "python-example", "version": "1", "controls": [],
                    "profiles": ["lsp-base", "transient"]}
        if method == "mount":
            if self.harness and not self.harness.closed:
                raise Failure("ALREADY_MOUNTED", "unmount first")
            self.harness = Harness(params["host"], params["environment"])
            return {}
        raise Failure("UNSUPPORTED", f"this harness has no {method}")

    def query(self, number, params):
        if not self.harness:
            raise Failure("NOT_MOUNTED", "mount first")
        job = Job(params, lambda outcome: self.answer(number, outcome))
        self.jobs[number] = job
        self.harness.query(job)

    def unmount(self, number):
        harness = self.harness
        if harness:
            harness.close()

        def wait():
            if harness:
                harness.wait()
            self.answer(number, {})
        threading.Thread(target=wait, daemon=True).start()


def main():
    subject = Subject()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for line in sys.stdin.buffer:
            if line.endswith(b"\n") and line.strip():
                subject.take(json.loads(line))
    finally:
        if subject.harness:
            subject.harness.kill()


if __name__ == "__main__":
    main()
