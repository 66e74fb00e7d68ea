//! `health`: one plain HTTP request, so that a container without curl can check itself.

use std::{
    io::{Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use clap::Args;
use url::Url;

use super::CommandError;

const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Args)]
pub(super) struct Arguments {
    /// Where to ask
    #[arg(long, default_value = "http://127.0.0.1:8585/healthz")]
    url: Url,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let url = &arguments.url;
    let status = ask(url).map_err(|why| CommandError::Failed(format!("{url}: {why}")))?;
    if status != "200" {
        return Err(CommandError::Failed(format!("{url}: HTTP {status}")));
    }
    println!("ok");
    Ok(())
}

/// The status code of a GET.
fn ask(url: &Url) -> Result<String, String> {
    let host = url
        .host_str()
        .filter(|_| url.scheme() == "http")
        .ok_or("only http:// URLs can be asked")?;
    let port = url.port_or_known_default().unwrap_or(80);
    let addresses = (host.trim_matches(['[', ']']), port)
        .to_socket_addrs()
        .map_err(|error| error.to_string())?;
    let mut stream = addresses
        .into_iter()
        .find_map(|address| TcpStream::connect_timeout(&address, TIMEOUT).ok())
        .ok_or("nothing listens there")?;
    let path = match url.path() {
        "/" => "/healthz",
        path => path,
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    stream
        .set_read_timeout(Some(TIMEOUT))
        .and_then(|()| stream.write_all(request.as_bytes()))
        .and_then(|()| stream.take(4096).read_to_string(&mut answer))
        .map_err(|error| error.to_string())?;
    answer
        .split(' ')
        .nth(1)
        .map(str::to_owned)
        .ok_or_else(|| "no HTTP answer".to_owned())
}
