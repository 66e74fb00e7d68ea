"""Run JupyterLab in this process and never outlive the process that started it.

The arguments are Jupyter's own; the token comes in JUPYTER_TOKEN. Standard
input is the control channel: a line "stop SECONDS" asks for a graceful stop
with that much patience, and its end means that the parent is gone, however it
went. Standard output is the answer channel: one line of JSON when the server
listens. It stays open as long as this process lives, so that its end is the
news of the exit. Everything else goes to standard error.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time

# Now, because the environment may be deleted by the time it is needed.
import psutil

MAX_SOCKETS = 16384

ORPHAN_GRACE = 4.0

LAB_EXTENSIONS = os.path.join(sys.prefix, "share", "jupyter", "labextensions")

# Arguments win over these.
DEFAULTS = {
    "ServerApp": {"ip": "127.0.0.1", "open_browser": False, "allow_root": True},
    "LabApp": {
        # Nothing asks the network for news, updates or extensions.
        "news_url": None,
        "check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "extension_manager": "readonly",
        # The user's own extensions may be made for another JupyterLab.
        "labextensions_path": [LAB_EXTENSIONS],
    },
}


class Watch:
    """Ends this process and whatever it started, gracefully where possible."""

    def __init__(self, control):
        self.server = None
        self.family = []
        self.stopping = threading.Lock()
        self.ending = threading.Lock()
        threading.Thread(target=self.obey, args=(control,), daemon=True).start()

    def obey(self, control):
        with os.fdopen(control, encoding="utf-8") as lines:
            for line in lines:
                verb, _, seconds = line.strip().partition(" ")
                if verb == "stop":
                    self.stop(float(seconds))
        # Nobody reads the log any more, and writing into a broken pipe would
        # raise in the middle of the clean-up.
        redirect(os.devnull, 1, 2)
        self.stop(ORPHAN_GRACE)

    def stop(self, grace):
        """Stop, once. Returns at once, so that a signal handler may call it."""
        if self.stopping.acquire(blocking=False):
            threading.Thread(target=self.wind_down, args=(grace,), daemon=True).start()

    def wind_down(self, grace):
        # Once a kernel is gone nobody can tell which processes were its own.
        self.family = descendants()
        if self.server is not None:
            self.server.io_loop.add_callback(self.server.stop)
            # The main thread ends the process as soon as Jupyter has stopped.
            time.sleep(grace)
        self.end(0)

    def end(self, status):
        """Kill what is left and go. An ordinary exit can hang on open rooms."""
        self.ending.acquire()
        try:
            for process in {*self.family, *descendants()}:
                with contextlib.suppress(Exception):  # It went by itself meanwhile.
                    process.kill()
            if self.server is not None:
                self.server.remove_server_info_file()
            sys.stderr.flush()
        finally:
            os._exit(status)


def descendants():
    try:
        return psutil.Process().children(recursive=True)
    except psutil.Error:
        return []


def redirect(path, *descriptors):
    target = os.open(path, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(target, descriptor)
    os.close(target)


def take_channels():
    """Move both channels to descriptors that kernels do not inherit."""
    control, answers = os.dup(0), os.dup(1)
    redirect(os.devnull, 0)
    os.dup2(2, 1)
    return control, answers


def make_server_class(watch, answers):
    from jupyter_core import paths
    from jupyter_server.serverapp import ServerApp
    from tornado.netutil import bind_sockets
    from traitlets import Bool

    # The machine's configuration may be about extensions that this private
    # environment does not have. The user's is left out by JUPYTER_CONFIG_DIR.
    paths.SYSTEM_CONFIG_PATH.clear()

    class Server(ServerApp):
        no_browser_open_file = Bool(True)

        def init_signal(self):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, lambda *_: watch.stop(ORPHAN_GRACE))

        # Jupyter looks for a free port, closes it, and binds it again later;
        # somebody else may have it by then. Here it is bound once.
        def _find_http_port(self):
            try:
                self._sockets = bind_sockets(self.port, self.ip)
            except OSError as error:
                self.log.critical("Cannot listen on %s:%s: %s", self.ip, self.port, error)
                self.exit(1)
            self.port = self._sockets[0].getsockname()[1]

        def _bind_http_server_tcp(self):
            self.http_server.add_sockets(self._sockets)
            return True

        async def _post_start(self):
            await super()._post_start()
            answer = {
                "url": self.connection_url,
                "token": self.identity_provider.token,
                "info_file": self.info_file,
            }
            os.write(answers, json.dumps(answer).encode() + b"\n")

        async def _cleanup(self):
            if saves := pending_saves(self):
                await asyncio.wait(saves)
            await super()._cleanup()

    return Server


def pending_saves(server):
    """Saves of edits made within the last second, which a stop would cancel."""
    apps = [app for each in server.extension_manager.extension_apps.values() for app in each]
    rooms = [getattr(app, "ywebsocket_server", None) for app in apps]
    rooms = [room for each in rooms if each for room in each.rooms.values()]
    saves = [getattr(room, "_saving_document", None) for room in rooms]
    return [save for save in saves if save and not save.done()]


def main():
    control, answers = take_channels()
    watch = Watch(control)
    status = 1
    try:
        from jupyterlab.labapp import LabApp
        from traitlets.config import Config

        LabApp.serverapp_class = make_server_class(watch, answers)
        server = LabApp.initialize_server(argv=sys.argv[1:], config=Config(DEFAULTS))
        # Jupyter reads the token when it is first asked for it. Kernels and
        # terminals would inherit the variable and have no business with it.
        server.identity_provider.token
        os.environ.pop("JUPYTER_TOKEN", None)
        # ZeroMQ allows a process 1,023 sockets, which some hundred kernels use up.
        with contextlib.suppress(Exception):
            server.kernel_manager.context.max_sockets = MAX_SOCKETS
        watch.server = server
        server.start()
        status = 0
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    watch.end(status)


main()
