"""A stand-in for the Hugging Face Hub on loopback: repositories with commits, and the part of its API that is used."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub:
    """Commits by repository, newest last: (hash, files); and every request that was made."""

    def __init__(self):
        self.commits = {}
        self.requests = []
        self.url = ""

    def commit(self, repo, files):
        history = self.commits.setdefault(repo, [])
        content = {**(history[-1][1] if history else {}), **files}
        number = hashlib.sha1(repr((len(history), sorted(content.items()))).encode()).hexdigest()
        history.append((number, content))
        return number

    def files(self, repo, revision):
        history = self.commits.get(repo, [])
        return next(((sha, files) for sha, files in reversed(history) if revision in (sha, "main")), None)


@contextmanager
def hub():
    kept = Hub()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def answer(self, body=b"", status=200, **headers):
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def missing(self, code):
            self.answer(b"{}", 404, X_Error_Code=code)

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            kept.requests.append((self.command, self.path))
            if match := re.fullmatch(r"/api/models/(.+?/.+?)/revision/(.+)", self.path.partition("?")[0]):
                found = kept.files(*match.groups())
                if found is None:
                    return self.missing("RepoNotFound" if match[1] not in kept.commits else "RevisionNotFound")
                names = [{"rfilename": name} for name in found[1]]
                return self.answer(json.dumps({"id": match[1], "sha": found[0], "siblings": names}).encode())
            match = re.fullmatch(r"/(.+?/.+?)/resolve/(.+?)/(.+)", self.path)
            found = match and kept.files(match[1], match[2])
            if not found:
                return self.missing("RepoNotFound")
            if match[3] not in found[1]:
                return self.missing("EntryNotFound")
            content = found[1][match[3]]
            etag = f'"{hashlib.sha256(content).hexdigest()}"'
            return self.answer(content, X_Repo_Commit=found[0], ETag=etag)

        def do_POST(self):
            kept.requests.append((self.command, self.path))
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Authorization") != "Bearer right":
                return self.answer(b"{}", 401)
            if self.path == "/api/repos/create":
                asked = json.loads(body)
                repo = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
                kept.commits.setdefault(repo, [])
                return self.answer(json.dumps({"url": f"{kept.url}/{repo}"}).encode())
            if self.path == "/api/validate-yaml":  # the head of the card
                return self.answer(b'{"errors": [], "warnings": []}')
            repo = re.match(r"/api/models/(.+?/.+?)/", self.path)[1]
            if "/preupload/" in self.path:
                files = json.loads(body)["files"]
                modes = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]
                return self.answer(json.dumps({"files": modes}).encode())
            lines = [json.loads(line) for line in body.splitlines()]
            added = [line["value"] for line in lines if line["key"] == "file"]
            files = {file["path"]: base64.b64decode(file["content"]) for file in added}
            number = kept.commit(repo, files)
            told = {"commitUrl": f"{kept.url}/{repo}/commit/{number}", "commitOid": number, "success": True}
            return self.answer(json.dumps(told).encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
