//! A link to the server that can be cut at a chosen statement, and that counts round trips.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Where the link fails, once.
#[derive(Clone, Copy)]
pub enum Cut {
    /// What holds these bytes is not passed on, and the link is closed.
    Before(&'static [u8]),
    /// It is passed on; its answer is not, and the link is closed.
    Behind(&'static [u8]),
    /// It is not passed on, and the link stays open without a word.
    Silent(&'static [u8]),
}

pub struct Link {
    port: u16,
    cut: Arc<Mutex<Option<Cut>>>,
    silenced: Arc<Notify>,
    round_trips: Arc<AtomicUsize>,
}

impl Link {
    pub async fn to(server: &PgConnectOptions) -> Self {
        let target = (server.get_host().to_owned(), server.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let this = Self { port, cut: Arc::default(), silenced: Arc::default(), round_trips: Arc::default() };
        let (cut, silenced, round_trips) =
            (this.cut.clone(), this.silenced.clone(), this.round_trips.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&target).await.expect("the server answers");
                tokio::spawn(pass(client, server, cut.clone(), silenced.clone(), round_trips.clone()));
            }
        });
        this
    }

    pub fn route(&self, options: PgConnectOptions) -> PgConnectOptions {
        options.host("127.0.0.1").port(self.port)
    }

    /// How often the client has asked and waited for an answer, over all its connections.
    pub fn round_trips(&self) -> usize {
        self.round_trips.load(Ordering::SeqCst)
    }

    pub fn cut(&self, cut: Cut) {
        *self.cut.lock().expect("nobody panicked") = Some(cut);
    }

    /// Waits until a [`Cut::Silent`] is there.
    pub async fn silenced(&self) {
        self.silenced.notified().await;
    }
}

async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    cut: Arc<Mutex<Option<Cut>>>,
    silenced: Arc<Notify>,
    round_trips: Arc<AtomicUsize>,
) {
    let mut waiting = false;
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let asked = &asked[..length];
                if !std::mem::replace(&mut waiting, true) {
                    round_trips.fetch_add(1, Ordering::SeqCst);
                }
                match take_if_hit(&cut, asked) {
                    None => {
                        if server.write_all(asked).await.is_err() {
                            return;
                        }
                    }
                    Some(Cut::Before(_)) => return,
                    Some(Cut::Behind(_)) => {
                        // The answer shows that it was done.
                        let _ = server.write_all(asked).await;
                        let _ = server.read(&mut answered).await;
                        return;
                    }
                    Some(Cut::Silent(_)) => {
                        silenced.notify_one();
                        // Until the client gives up.
                        while matches!(client.read(&mut answered).await, Ok(1..)) {}
                        return;
                    }
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                waiting = false;
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn take_if_hit(cut: &Mutex<Option<Cut>>, asked: &[u8]) -> Option<Cut> {
    let mut cut = cut.lock().expect("nobody panicked");
    let (Cut::Before(mark) | Cut::Behind(mark) | Cut::Silent(mark)) = (*cut)?;
    if asked.windows(mark.len()).any(|window| window == mark) { cut.take() } else { None }
}
