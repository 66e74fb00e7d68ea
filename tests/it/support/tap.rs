//! A connection between the gateway and Jupyter on which is written down what the gateway says.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
};
use tokio_util::task::AbortOnDropHandle;

pub struct Tap {
    address: String,
    said: Arc<Mutex<Vec<u8>>>,
    _task: AbortOnDropHandle<()>,
}

impl Tap {
    /// Starts one in front of a server, by its host and port.
    pub async fn on(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let said = Arc::<Mutex<Vec<u8>>>::default();
        let (shared, target) = (Arc::clone(&said), target.to_owned());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, target.clone(), Arc::clone(&shared)));
            }
        });
        Self {
            address,
            said,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub fn was_told(&self, text: &str) -> bool {
        let said = self.said.lock().expect("no panic");
        said.windows(text.len())
            .any(|part| part.eq_ignore_ascii_case(text.as_bytes()))
    }
}

async fn pass(client: TcpStream, target: String, said: Arc<Mutex<Vec<u8>>>) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let answers = tokio::spawn(async move {
        let _ = copy(&mut from_server, &mut to_client).await;
        let _ = to_client.shutdown().await;
    });
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
        said.lock().expect("no panic").extend_from_slice(&buffer[..read]);
        if to_server.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    let _ = to_server.shutdown().await;
    let _ = answers.await;
}
