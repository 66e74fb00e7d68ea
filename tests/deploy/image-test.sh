#!/bin/bash
# Builds the image with buildah on bases made by mmdebstrap, looks at what is in it, runs it as a stranger on a read-only root, and
# calls it.
#
# Needs root and Debian's buildah and mmdebstrap, and builds for this machine's architecture only. It takes the steps of the Dockerfile, compiler
# and registries included, on a base with the Rust of this machine; the published base images are not looked at. PROFILE=quick takes less time
# than release. With BINARY=target/debug/jupyter-mcp-gateway nothing is compiled: a stand-in for cargo puts that binary where the build would, so
# what is said of size and of what the program is made of is not tested then.
set -euo pipefail
cd "$(dirname "$0")/../.."

profile=${PROFILE:-release}
binary=${BINARY:-}
base=localhost/jmg-rust
image=localhost/jmg-image-test
program=usr/local/bin/jupyter-mcp-gateway
# Another folder than the user's own images are in, which is removed at the end.
work=$(mktemp -d)
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$work/storage" --runroot "$work/run" "$@"; }
cleanup() {
    buildah umount --all > /dev/null 2>&1 || true
    rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "image-test: $*"; exit 1; }

for tool in buildah mmdebstrap curl objcopy python3; do
    command -v "$tool" > /dev/null || fail "install $tool (Debian: apt-get install buildah mmdebstrap curl binutils python3)"
done
[ "$(id -u)" = 0 ] || fail "run it as root"

echo "== a base with the Rust of this machine"
mmdebstrap --quiet --variant=minbase --include=gcc,libc6-dev,make,ca-certificates bookworm "$work/debian.tar"
container=$(buildah from scratch)
buildah add --quiet "$container" "$work/debian.tar" /
# Whatever this machine trusts between itself and the registries.
buildah add --quiet "$container" "$(readlink -f /etc/ssl/certs/ca-certificates.crt)" /etc/ssl/certs/ca-certificates.crt
if [ -n "$binary" ]; then
    cp "$binary" "$work/gateway"
    printf '#!/bin/sh\ncase $1 in install) touch /usr/local/bin/cargo-auditable ;; *) mkdir -p target/%s; cp /gateway target/%s/jupyter-mcp-gateway ;; esac\n' \
        "$profile" "$profile" > "$work/cargo"
    chmod +x "$work/cargo"
    buildah add --quiet "$container" "$work/gateway" /gateway
    buildah add --quiet "$container" "$work/cargo" /usr/local/bin/cargo
else
    sysroot=$(rustc --print sysroot)
    buildah add --quiet "$container" "$sysroot/bin" /usr/local/bin
    buildah add --quiet "$container" "$sysroot/lib" /usr/local/lib
    config=${CARGO_HOME:-$HOME/.cargo}/config.toml
    if [ -f "$config" ]; then buildah add --quiet "$container" "$config" /usr/local/cargo/config.toml; fi
fi
buildah config --env PATH=/usr/local/bin:/usr/bin:/bin --env CARGO_HOME=/usr/local/cargo "$container"
buildah commit --quiet --rm "$container" "$base"
rm "$work/debian.tar"

echo "== the image"
build() {
    buildah bud --quiet --format docker --pull-never --build-arg "RUST_IMAGE=$base" --build-arg "CARGO_PROFILE=$profile" \
        --build-arg VERSION=test --build-arg REVISION=0123abc "$@" .
}
build --tag "$image"
container=$(buildah from --pull-never "$image")
root=$(buildah mount "$container")
bytes=$(du -sb "$root" | cut -f1)
echo "   $((bytes / 1000000)) MB"
config=$(buildah inspect --format '{{.Docker.Config.User}} {{.Docker.Config.Entrypoint}} {{.Docker.Config.Healthcheck}}' "$image")
case $config in
    "65532:65532 [/usr/local/bin/jupyter-mcp-gateway] "*health*) ;;
    *) fail "not the configuration that was meant: $config" ;;
esac
labels=$(buildah inspect --format '{{.Docker.Config.Labels}}' "$image")
for label in image.title:jupyter-mcp-gateway image.version:test image.revision:0123abc image.licenses:; do
    case $labels in *"$label"*) ;; *) fail "there is no label $label: $labels" ;; esac
done
for shell in bin/sh usr/bin/sh bin/bash bin/busybox; do
    [ ! -e "$root/$shell" ] || fail "there is a shell in it"
done
if [ -z "$(objdump --section-headers "$root/$program" | grep -F .gnu_debuglink)" ]; then fail "it does not name its symbols"; fi
if objdump --section-headers "$root/$program" | grep -q -F .debug_line; then fail "the symbols are in it"; fi

if [ -n "$binary" ]; then
    echo "== its symbols"
    build --target symbols --output "$work/symbols" > /dev/null
    ids=$(readelf --notes "$root/$program" "$work/symbols/jupyter-mcp-gateway.debug" | sed -n 's/.*Build ID: //p' | sort -u | wc -l)
    [ "$ids" = 1 ] || fail "the symbols are of another program"
else
    echo "== what it is made of"
    objcopy --dump-section .dep-v0="$work/made-of" "$root/$program" "$work/unused"
    python3 - "$work/made-of" << 'PYTHON'
import json, pathlib, sys, zlib

packages = json.loads(zlib.decompress(pathlib.Path(sys.argv[1]).read_bytes()))["packages"]
names = {package["name"] for package in packages}
missing = {"jupyter-mcp-gateway", "tokio", "rmcp", "yrs", "sqlx"} - names
assert not missing, f"the program does not say that it is made of {missing}"
print(f"   {len(packages)} packages")
PYTHON
    if [ "$profile" = release ] && [ "$bytes" -ge 60000000 ]; then fail "it is larger than 60 MB"; fi
fi

echo "== it is run"
sh tests/deploy/run-image.sh "$root" "$work"
echo "image-test: ok"
