#!/bin/sh
# Starts the gateway of a root file system, read-only and as a user that nobody knows, and calls it as a client:
# run-image.sh ROOT WORK. Needs root.
set -eu

root=$1
work=$2
port=18585
token=token-of-the-image-test

mkdir -p "$work/etc" "$work/data"
chmod 0777 "$work/data"
cat > "$work/etc/gateway.toml" << CONFIG
[http]
listen = "127.0.0.1:$port"
[store]
url = "sqlite:///var/lib/jupyter-mcp-gateway/gateway.db"
[[servers]]
name = "nowhere"
url = "http://127.0.0.1:9/"
[[tenants]]
name = "test"
[[auth.tokens]]
name = "client"
tenant = "test"
token = "$token"
CONFIG
# Becomes the program, so that a signal to it reaches the gateway.
gateway() {
    exec unshare --mount sh -c '
        set -eu
        mount --bind "$1" "$1"
        mount --bind "$2/etc" "$1/etc/jupyter-mcp-gateway"
        mount --bind "$2/data" "$1/var/lib/jupyter-mcp-gateway"
        mount -o remount,bind,ro "$1"
        root=$1; shift 2
        exec chroot --userspec=12345:54321 "$root" /usr/local/bin/jupyter-mcp-gateway "$@"
    ' sh "$root" "$work" "$@"
}

(gateway check-config --config /etc/jupyter-mcp-gateway/gateway.toml)
gateway serve --config /etc/jupyter-mcp-gateway/gateway.toml > "$work/out" 2> "$work/log" &
server=$!
trap 'kill "$server" 2> /dev/null || true' EXIT
tries=0
until (gateway health --url "http://127.0.0.1:$port/healthz") > /dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -ge 60 ] || ! kill -0 "$server" 2> /dev/null; then
        cat "$work/log"
        exit 1
    fi
    sleep 0.5
done
answer=$(curl --silent --show-error --fail-with-body "http://127.0.0.1:$port/mcp" \
    --header "Authorization: Bearer $token" --header 'Content-Type: application/json' \
    --header 'Accept: application/json, text/event-stream' --header 'MCP-Protocol-Version: 2025-06-18' \
    --data '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"image-test","version":"1"}}}')
case $answer in
    *serverInfo*) ;;
    *) echo "no answer of an MCP server: $answer"; exit 1 ;;
esac
[ -s "$work/data/gateway.db" ] || { echo "the store is not on the volume"; exit 1; }
kill -TERM "$server"
wait "$server"
