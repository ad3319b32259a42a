# SPDX-License-Identifier: GPL-2.0-or-later
"""Mail servers for tests: a real one (aiosmtpd), and one that says what it is told to, or nothing."""
import asyncio
import email
import email.policy
import socket
import ssl
import subprocess
import threading

from aiosmtpd.smtp import SMTP, AuthResult

from sonde import DEADLINE


def certificate(directory, name):
    """A certificate that vouches for itself, and its key."""
    paths = f"{directory}/{name}.crt", f"{directory}/{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
                    "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


class Mail:
    def __init__(self, sender, recipients, content):
        self.sender, self.recipients, self.content = sender, recipients, content
        self.message = email.message_from_bytes(content, policy=email.policy.default)

    @property
    def subject(self):
        return self.message["Subject"]

    @property
    def text(self):
        return self.message.get_body(("plain",)).get_content()


class Handler:
    """Keeps what it gets. `answers` says what to answer to RCPT, by recipient: one after the other, the last for ever.
    The mail with which it has `n_unanswered` of them gets no answer."""

    def __init__(self):
        self.mails, self.answers, self.hellos, self.n_recipients = [], {}, [], 0
        self.n_unanswered = None

    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        self.hellos.append(hostname)
        return responses

    async def handle_RCPT(self, server, session, envelope, address, options):
        self.n_recipients += 1
        answers = self.answers.get(address)
        if answers:
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if not answer.startswith("250"):
                return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.mails.append(Mail(envelope.mail_from, envelope.rcpt_tos, envelope.content))
        if len(self.mails) == self.n_unanswered:
            await asyncio.Event().wait()  # until the client is gone
        return "250 taken"


class Server:
    """A real one on a free port of the loopback."""

    def __init__(self, certificate=None, password=None, with_starttls=True):
        self.handler = Handler()
        self.options = {"enable_SMTPUTF8": False, "data_size_limit": 32 << 20}
        context = None
        if certificate:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*certificate)
        if certificate and with_starttls:
            self.options.update(tls_context=context, require_starttls=True)
        if password:
            self.options.update(auth_required=True, auth_require_tls=bool(certificate), authenticator=self._authenticate)
        self.password = password
        self.loop = asyncio.new_event_loop()
        self.server = self.loop.run_until_complete(self.loop.create_server(
            self._session, "127.0.0.1", 0, ssl=None if with_starttls else context))
        self.port = self.server.sockets[0].getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def _session(self):
        return SMTP(self.handler, loop=self.loop, **self.options)

    def _authenticate(self, server, session, envelope, mechanism, data):
        return AuthResult(success=(data.login, data.password) == self.password, handled=False)

    @property
    def mails(self):
        return self.handler.mails

    def stop(self):
        async def end():
            self.server.close()
            for task in asyncio.all_tasks(self.loop) - {asyncio.current_task()}:
                task.cancel()
        asyncio.run_coroutine_threadsafe(end(), self.loop).result(DEADLINE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Talker:
    """Says `lines` one after the other, each when a line has come; then nothing more, until it is stopped."""

    def __init__(self, *lines):
        self.lines = lines
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.n_connections = 0
        self.open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.n_connections += 1
            self.open.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        try:
            for i, line in enumerate(self.lines):
                if i:
                    connection.recv(65536)
                connection.sendall(line.encode() + b"\r\n")
        except OSError:
            pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.open:
            connection.close()
