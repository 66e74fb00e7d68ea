#!/bin/sh
# Makes the tokens and passwords of compose.yaml, once, in a file that only this user can read.
set -eu
cd "$(dirname "$0")"

if [ -e .env ]; then
    echo "The token for agents is in deploy/compose/.env, as GATEWAY_TOKEN."
    exit 0
fi
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
umask 077
token=jmg_$(random)
{
    echo "LAB_A_TOKEN=$(random)"
    echo "LAB_B_TOKEN=$(random)"
    echo "POSTGRES_PASSWORD=$(random)"
    echo "GRAFANA_PASSWORD=$(random)"
    echo "GATEWAY_TOKEN=$token"
    echo "GATEWAY_TOKEN_SHA256=$(printf %s "$token" | sha256sum | cut -d ' ' -f 1)"
} > .env.new
mv .env.new .env
echo "Agents connect to http://localhost:8585/mcp with the token $token"
echo "All tokens and passwords are in deploy/compose/.env."
