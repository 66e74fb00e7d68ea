# Settings of the Hub of the tests: everybody may log in, servers are processes of this machine, and those of some names
# start as real ones do on a bad day. Ports, secrets and folders come from the environment.
import os
import sys
from pathlib import Path

from jupyterhub.spawner import SimpleLocalProcessSpawner
from tornado import web

home = Path(os.environ["TEST_HUB_HOME"])
port, hub_port, proxy_port = os.environ["TEST_HUB_PORTS"].split()
host = "127.0.0.1"


class Spawner(SimpleLocalProcessSpawner):
    """Starts servers, but for those of two names: `broken` fails, and for `busy` there is no place at the moment."""

    async def start(self):
        if self.name == "busy":
            error = web.HTTPError(429, "No machine is free.")
            error.headers = {"Retry-After": 30}
            raise error
        if self.name == "broken":
            raise RuntimeError("no machine has so much memory")
        return await super().start()

    def get_args(self):
        databases = [f"SQLiteYStore.db_path={self.home_dir}/ystore{self.name}.db"]
        databases.append(f"BaseFileIdManager.db_path={self.home_dir}/file_ids{self.name}.db")
        return [*super().get_args(), "--allow-root", *(f"--{database}" for database in databases)]

    async def progress(self):
        yield {"progress": 20, "message": f"Preparing a place for {self.user.name}"}


c = get_config()  # noqa: F821
c.JupyterHub.bind_url = f"http://{host}:{port}"
c.JupyterHub.hub_bind_url = f"http://{host}:{hub_port}"
c.ConfigurableHTTPProxy.api_url = f"http://{host}:{proxy_port}"
c.ConfigurableHTTPProxy.command = os.environ["TEST_HUB_PROXY"].split("|")
c.JupyterHub.db_url = f"sqlite:///{home}/hub.sqlite"
c.JupyterHub.cookie_secret_file = str(home / "cookie_secret")
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = Spawner
c.JupyterHub.allow_named_servers = True
c.JupyterHub.named_server_limit_per_user = 2
c.JupyterHub.last_activity_interval = 2
# So that the progress of a start is told while the request that asks for it is still unanswered, and after.
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 1}
c.Spawner.cmd = [str(Path(sys.executable).parent / "jupyterhub-singleuser")]
c.Spawner.start_timeout = 120
c.Spawner.http_timeout = 120
# A server takes an interrupt for a question to somebody at a terminal.
c.LocalProcessSpawner.interrupt_timeout = 1
c.LocalProcessSpawner.term_timeout = 10
c.SimpleLocalProcessSpawner.home_dir_template = str(home / "users" / "{username}")
c.Spawner.environment = {
    "JUPYTER_CONFIG_DIR": str(home / "config"),
    "JUPYTER_DATA_DIR": str(home / "data"),
    "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
    "IPYTHONDIR": str(home / "ipython"),
    "JUPYTER_PREFER_ENV_PATH": "1",
}

# Who makes users and tokens, as an operator does.
c.JupyterHub.services = [{"name": "operator", "api_token": os.environ["TEST_HUB_TOKEN"]}]
c.JupyterHub.load_roles = [
    {
        "name": "operator",
        "services": ["operator"],
        "scopes": [
            *("admin:users", "admin:servers", "admin:services", "tokens", "shares", "proxy", "list:users"),
            *("access:servers", "access:services"),
        ],
    },
    {"name": "user", "scopes": ["self", "custom:mcp:use", "access:services"]},
]
c.JupyterHub.custom_scopes = {"custom:mcp:use": {"description": "Work through the gateway"}}
