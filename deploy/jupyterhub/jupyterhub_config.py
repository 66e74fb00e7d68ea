# What a JupyterHub needs for the gateway beside it: a service by whose name the right to use it is given.
#
#   jupyter-mcp-gateway serve --config deploy/jupyterhub/gateway.toml
#
# A person makes a token under "Token" in the Hub's menu, with the scope access:services!service=mcp, and gives it to an agent,
# which calls http://127.0.0.1:8585/mcp with it and reaches that person's servers.

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
