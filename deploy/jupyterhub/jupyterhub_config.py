# What a JupyterHub needs for the gateway beside it: a service by whose name the right to use it is given.
#
#   jupyter-mcp-gateway serve --config deploy/jupyterhub/gateway.toml
#
# A person makes a token under "Token" in the Hub's menu and gives it to an agent, which calls http://127.0.0.1:8585/mcp with it and
# reaches that person's servers. It needs the scopes access:services!service=mcp, access:servers!user, read:servers!user and, to
# start servers, servers!user; one that is made without choosing scopes has them.

c = get_config()  # noqa: F821

c.JupyterHub.services = [{"name": "mcp"}]
c.JupyterHub.load_roles = [
    {
        "name": "mcp-users",
        "description": "May let agents in through the MCP gateway",
        "scopes": ["self", "access:services!service=mcp"],
        "groups": ["mcp"],
    }
]
