#!/bin/bash
# Builds the image with buildah on bases made by mmdebstrap, runs it as a stranger on a read-only root, and calls it.
#
# Needs root and Debian's buildah and mmdebstrap. Compiles the gateway anew: PROFILE=quick takes less time than release. With
# BINARY=target/debug/jupyter-mcp-gateway nothing is compiled, and a stand-in for cargo puts that binary where the build would.
set -euo pipefail
cd "$(dirname "$0")/../.."

profile=${PROFILE:-release}
binary=${BINARY:-}
base=localhost/jmg-rust
image=localhost/jmg-image-test
# Another folder than the user's own images are in, which is removed at the end.
work=$(mktemp -d)
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$work/storage" --runroot "$work/run" "$@"; }
server=
cleanup() {
    if [ -n "$server" ]; then kill "$server" 2> /dev/null || true; fi
    buildah umount --all > /dev/null 2>&1 || true
    rm -rf "$work"
}
trap cleanup EXIT

for tool in buildah mmdebstrap curl; do
    command -v "$tool" > /dev/null || { echo "image-test: install $tool (Debian: apt-get install $tool)"; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "image-test: run it as root"; exit 1; }

echo "== a base with the Rust of this machine"
mmdebstrap --quiet --variant=minbase --include=gcc,libc6-dev,make,ca-certificates bookworm "$work/debian.tar"
container=$(buildah from scratch)
buildah add --quiet "$container" "$work/debian.tar" /
if [ -n "$binary" ]; then
    cp "$binary" "$work/gateway"
    printf '#!/bin/sh\ncase $1 in install) touch /usr/local/bin/cargo-auditable ;; *) mkdir -p target/%s; cp /gateway target/%s/jupyter-mcp-gateway ;; esac\n' \
        "$profile" "$profile" > "$work/cargo"
    chmod +x "$work/cargo"
    buildah add --quiet "$container" "$work/gateway" /gateway
    buildah add --quiet "$container" "$work/cargo" /usr/local/bin/cargo
else
    buildah add --quiet "$container" "$(rustc --print sysroot)" /usr/local
fi
buildah config --env PATH=/usr/local/bin:/usr/bin:/bin --env CARGO_HOME=/usr/local/cargo "$container"
buildah commit --quiet --rm "$container" "$base"
rm "$work/debian.tar"

echo "== the image"
buildah bud --quiet --format docker --pull-never --build-arg "RUST_IMAGE=$base" --build-arg "CARGO_PROFILE=$profile" \
    --build-arg VERSION=test --tag "$image" .

container=$(buildah from --pull-never "$image")
root=$(buildah mount "$container")
bytes=$(du -sb "$root" | cut -f1)
echo "   $((bytes / 1000000)) MB"
case $profile:$binary in
    release:*/debug/*) ;;
    release:*)
        [ "$bytes" -lt 60000000 ] || { echo "image-test: it is larger than 60 MB"; exit 1; }
        ;;
esac
config=$(buildah inspect --format '{{.Docker.Config.User}} {{.Docker.Config.Entrypoint}} {{.Docker.Config.Healthcheck}}' "$image")
case $config in
    "65532:65532 [/usr/local/bin/jupyter-mcp-gateway] "*health*) ;;
    *) echo "image-test: not the configuration that was meant: $config"; exit 1 ;;
esac
[ ! -e "$root/bin/sh" ] || { echo "image-test: there is a shell in it"; exit 1; }

sh tests/deploy/run-image.sh "$root" "$work"
echo "image-test: ok"
