//! `health`: one HTTP request, so that a container without curl can check itself.

mod any_certificate;

use std::{
    io::{Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use clap::Args;
use url::Url;

use super::CommandError;

const TIMEOUT: Duration = Duration::from_secs(5);
/// The status is in the first line of the answer.
const MAX_ANSWER: u64 = 4096;

#[derive(Args)]
pub(super) struct Arguments {
    /// Where to ask; certificates are not checked
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
        .filter(|_| ["http", "https"].contains(&url.scheme()))
        .ok_or("only http:// and https:// URLs can be asked")?;
    let port = url.port_or_known_default().unwrap_or(80);
    let name = host.trim_matches(['[', ']']);
    let addresses = (name, port).to_socket_addrs().map_err(|error| error.to_string())?;
    let stream = addresses
        .into_iter()
        .find_map(|address| TcpStream::connect_timeout(&address, TIMEOUT).ok())
        .ok_or("nothing listens there")?;
    let timeouts = stream
        .set_read_timeout(Some(TIMEOUT))
        .and_then(|()| stream.set_write_timeout(Some(TIMEOUT)));
    timeouts.map_err(|error| error.to_string())?;
    let path = match url.path() {
        "/" => "/healthz",
        path => path,
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    match url.scheme() {
        "https" => status_of(any_certificate::connect(name, stream)?, &request),
        _ => status_of(stream, &request),
    }
}

fn status_of(mut stream: impl Read + Write, request: &str) -> Result<String, String> {
    let mut answer = Vec::new();
    let asked = stream.write_all(request.as_bytes());
    let read = asked.and_then(|()| stream.take(MAX_ANSWER).read_to_end(&mut answer));
    let answer = String::from_utf8_lossy(&answer);
    match (answer.split(' ').nth(1), read) {
        // How the connection ends after that is of no interest.
        (Some(status), _) => Ok(status.to_owned()),
        (None, Err(error)) => Err(error.to_string()),
        (None, Ok(_)) => Err("no HTTP answer".to_owned()),
    }
}
