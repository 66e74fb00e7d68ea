//! WebSockets to a Jupyter server: rooms and kernels are reached through them.

use std::{
    io,
    pin::Pin,
    sync::{Arc, LazyLock},
    task::{Context, Poll},
    time::Duration,
};

use http::{StatusCode, Uri, header::AUTHORIZATION};
use rustls::{ClientConfig, pki_types::ServerName};
use rustls_platform_verifier::ConfigVerifierExt;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, ClientRequestBuilder, error::ProtocolError, protocol::WebSocketConfig},
};

use super::{JupyterError, JupyterServer, limits::MAX_FRAME_BYTES};

/// So much is read at once. Nearly all messages are far smaller, every read fills all of it with zeros first, and each
/// socket keeps it.
const READ_BYTES: usize = 16 * 1024;

pub type Socket = WebSocketStream<Box<dyn Connection>>;

pub trait Connection: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Connection for T {}

impl JupyterServer {
    /// Opens a WebSocket on an API path that is already percent-encoded; `subject` is what an error names.
    pub async fn socket(&self, api_path: &str, subject: &str) -> Result<Socket, JupyterError> {
        let connecting = self.connect(api_path, subject, None);
        let opened = self.within(self.request_timeout(), connecting).await?;
        self.require_socket(opened)
    }

    /// Opens a socket of a kernel, in the older framing if the server does not speak the subprotocol.
    pub(crate) async fn kernel_socket(
        &self,
        subprotocol: Option<&str>,
        api_path: &str,
        kernel: &str,
    ) -> Result<(Socket, bool), JupyterError> {
        let connect = |subprotocol| self.within(self.kernel_timeout(), self.connect(api_path, kernel, subprotocol));
        if subprotocol.is_some()
            && let Some(socket) = connect(subprotocol).await?
        {
            return Ok((socket, true));
        }
        Ok((self.require_socket(connect(None).await?)?, false))
    }

    fn require_socket(&self, opened: Option<Socket>) -> Result<Socket, JupyterError> {
        opened.ok_or_else(|| self.unreachable("it requires an unknown WebSocket subprotocol".to_owned()))
    }

    async fn within<T>(
        &self,
        limit: Duration,
        connecting: impl Future<Output = Result<T, JupyterError>>,
    ) -> Result<T, JupyterError> {
        let connected = timeout(limit, connecting).await;
        connected.unwrap_or_else(|_| Err(self.timed_out(limit)))
    }

    async fn connect(
        &self,
        api_path: &str,
        subject: &str,
        subprotocol: Option<&str>,
    ) -> Result<Option<Socket>, JupyterError> {
        let unreachable = |error: &dyn std::error::Error| self.unreachable(error.to_string());
        let (host, port) = self.authority();
        let tcp = TcpStream::connect((host, port))
            .await
            .map_err(|error| unreachable(&error))?;
        tcp.set_nodelay(true).map_err(|error| unreachable(&error))?;
        let secure = self.url().scheme() == "https";
        let connection: Box<dyn Connection> = match secure {
            true => {
                let connected = self.tls(host, QuickAck(tcp)).await;
                Box::new(connected.map_err(|error| unreachable(&error))?)
            }
            false => Box::new(QuickAck(tcp)),
        };
        let scheme = if secure { "wss" } else { "ws" };
        let url = format!(
            "{scheme}{}{api_path}",
            self.url().as_str().trim_start_matches(self.url().scheme())
        );
        let uri: Uri = url
            .parse()
            .map_err(|error: http::uri::InvalidUri| unreachable(&error))?;
        let mut request = ClientRequestBuilder::new(uri);
        if let Some(authorization) = self.authorization() {
            request = request.with_header(AUTHORIZATION.as_str(), authorization);
        }
        if let Some(subprotocol) = subprotocol {
            request = request.with_sub_protocol(subprotocol);
        }
        for (name, value) in &self.trace_headers() {
            if let Ok(value) = value.to_str() {
                request = request.with_header(name.as_str(), value);
            }
        }
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .max_message_size(Some(MAX_FRAME_BYTES))
            .max_frame_size(Some(MAX_FRAME_BYTES));
        match client_async_with_config(request, connection, Some(config)).await {
            Ok((socket, _)) => Ok(Some(socket)),
            Err(tungstenite::Error::Protocol(ProtocolError::SecWebSocketSubProtocolError(_))) => Ok(None),
            Err(tungstenite::Error::Http(answer)) => Err(self.refused_upgrade(answer.status(), subject)),
            Err(error) => Err(unreachable(&error)),
        }
    }

    async fn tls(&self, host: &str, tcp: QuickAck) -> io::Result<TlsStream<QuickAck>> {
        let config = match &self.authorities {
            Some(authorities) => authorities.config(),
            None => system_config()?,
        };
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(Arc::clone(config)).connect(name, tcp).await
    }

    fn refused_upgrade(&self, status: StatusCode, subject: &str) -> JupyterError {
        let server = self.name().to_owned();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.refused_token(status),
            StatusCode::NOT_FOUND => JupyterError::NotFound {
                server,
                path: subject.to_owned(),
            },
            _ => JupyterError::Refused {
                server,
                status: status.as_u16(),
                message: "the connection was not upgraded".to_owned(),
            },
        }
    }
}

/// Trusts whom the system trusts.
fn system_config() -> io::Result<&'static Arc<ClientConfig>> {
    static CONFIG: LazyLock<Result<Arc<ClientConfig>, rustls::Error>> =
        LazyLock::new(|| ClientConfig::with_platform_verifier().map(Arc::new));
    CONFIG.as_ref().map_err(io::Error::other)
}

/// A stream that acknowledges at once what it receives. Jupyter's server leaves Nagle's algorithm on,
/// so with delayed acknowledgements every second small message would wait for 40 ms.
struct QuickAck(TcpStream);

impl AsyncRead for QuickAck {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.0).poll_read(context, buffer);
        // The kernel forgets the setting after a while, so it is renewed with each read.
        #[cfg(target_os = "linux")]
        if polled.is_ready() {
            let _ = self.0.set_quickack(true);
        }
        polled
    }
}

impl AsyncWrite for QuickAck {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
