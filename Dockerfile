# The image of the gateway: its binary, the C library, certificates of authorities, and nothing else.
#
#   make image                     for this machine
#   docker buildx build --platform linux/amd64,linux/arm64 .
#
# Base images are arguments, so that a company can name its own; the Rust one has to be a Debian with gcc and make.
ARG RUST_IMAGE=rust:1.95-bookworm

# Records what the binary is made of inside of it, for `cargo audit bin`, syft and trivy.
FROM ${RUST_IMAGE} AS auditable
ARG CARGO_AUDITABLE_VERSION=0.7.7
RUN cargo install --locked --version "${CARGO_AUDITABLE_VERSION}" --root /usr/local cargo-auditable

# What decides which dependencies are built, so that the layer with them lasts as long as that does.
FROM ${RUST_IMAGE} AS manifests
WORKDIR /src
COPY . .
RUN sh deploy/image/manifests.sh

FROM ${RUST_IMAGE} AS build
ARG CARGO_PROFILE=release
WORKDIR /src
COPY --from=auditable /usr/local/bin/cargo-auditable /usr/local/bin/
COPY --from=manifests /src ./
RUN cargo auditable build --locked --profile "${CARGO_PROFILE}" --bin jupyter-mcp-gateway
COPY . .
# Cargo goes by times, and those of the sources are older than the empty ones that were built above.
RUN find src crates -name '*.rs' -exec touch {} + \
    && cargo auditable build --locked --profile "${CARGO_PROFILE}" --bin jupyter-mcp-gateway \
    && sh deploy/image/assemble.sh "target/${CARGO_PROFILE}/jupyter-mcp-gateway" /out

# The symbols for a debugger: `docker build --target symbols --output DIR .`
FROM scratch AS symbols
COPY --from=build /out/jupyter-mcp-gateway.debug /

FROM scratch
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="jupyter-mcp-gateway" \
    org.opencontainers.image.description="One MCP endpoint for any number of agents, live in any number of Jupyter servers" \
    org.opencontainers.image.licenses="Apache-2.0 OR MIT" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
COPY --from=build /out/root /
# Of the group 0, which platforms that choose the user by themselves give it.
COPY --from=build --chown=65532:0 /out/data /var/lib/jupyter-mcp-gateway
WORKDIR /var/lib/jupyter-mcp-gateway
USER 65532:65532
EXPOSE 8585
# On 127.0.0.1:8585. With another port or with TLS, give the URL: --health-cmd 'jupyter-mcp-gateway health --url https://127.0.0.1:8585'
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/local/bin/jupyter-mcp-gateway", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/jupyter-mcp-gateway"]
CMD ["serve", "--config", "/etc/jupyter-mcp-gateway/gateway.toml"]
