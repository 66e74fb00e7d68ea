# What a JupyterHub needs for the gateway beside it: a service, by whose name the right to use it is given, and as which the
# gateway asks people to log in.
#
#   export MCP_SERVICE_TOKEN=$(openssl rand -hex 32)    # for both
#   jupyter-mcp-gateway serve --config deploy/jupyterhub/gateway.toml
#
# A person gives their agent the URL http://127.0.0.1:8585/mcp and logs in at the Hub in the browser that it opens; the agent then
# reaches that person's servers. One that cannot open a browser gets a token that the person makes under "Token" in the Hub's menu. Such a
# token needs the scopes access:services!service=mcp, access:servers!user, read:servers!user and, to start servers, servers!user; one that
# is made without choosing scopes has them.
import os

c = get_config()  # noqa: F821

c.JupyterHub.services = [
    {
        "name": "mcp",
        "api_token": os.environ["MCP_SERVICE_TOKEN"],
        "oauth_redirect_uri": "http://127.0.0.1:8585/oauth/callback",
        # What the service may do for a person: use their servers, see whether those run, and start them.
        "oauth_client_allowed_scopes": ["access:servers!user", "read:servers!user", "servers!user"],
    }
]
c.JupyterHub.load_roles = [
    {
        "name": "mcp-users",
        "description": "May let agents in through the MCP gateway",
        "scopes": ["self", "access:services!service=mcp"],
        "groups": ["mcp"],
    }
]
