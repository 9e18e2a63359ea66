use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const COMMIT: &[u8] = b"COMMIT\0";

/// The way from one worker to PostgreSQL: it can be cut at a COMMIT, and it can fall silent.
#[derive(Debug)]
pub struct Link {
    port: u16,
    flow: watch::Sender<Flow>,
    armed: Arc<Mutex<Option<Armed>>>,
    accepting: JoinHandle<()>,
}

/// Where the link is cut, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The COMMIT is not passed on: it is not done.
    BeforeCommit,
    /// It is passed on, and its answer is not: it is done.
    BehindCommit,
}

#[derive(Debug)]
struct Armed {
    cut: Cut,
    /// Told once it was cut.
    done: oneshot::Sender<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Passing,
    /// Nothing passes, and every connection stays open.
    Silent,
    /// New connections pass. Those that fell silent never say anything again: nobody has told their ends.
    PassingAnew,
}

/// What becomes of the connections that a silence met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// They go on.
    Resumed,
    /// They stay open and silent for ever.
    HalfOpen,
}

struct Pair {
    client: TcpStream,
    server: TcpStream,
    flow: watch::Receiver<Flow>,
    armed: Arc<Mutex<Option<Armed>>>,
}

impl Link {
    /// A link to the server of these options.
    pub async fn to(server: &PgConnectOptions) -> anyhow::Result<Self> {
        let target = (server.get_host().to_owned(), server.get_port());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (flow, watched) = watch::channel(Flow::Passing);
        let armed = Arc::default();
        let shared = Arc::clone(&armed);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // The server may be down.
                let Ok(server) = TcpStream::connect(&target).await else { continue };
                let pair = Pair { client, server, flow: watched.clone(), armed: Arc::clone(&shared) };
                tokio::spawn(pair.pass());
            }
        });
        Ok(Self { port, flow, armed, accepting })
    }

    /// The address of a database by way of this link.
    pub fn url(&self, options: PgConnectOptions) -> String {
        options.host("127.0.0.1").port(self.port).to_url_lossy().into()
    }

    /// Cuts the connection that sends the next COMMIT; whether one was sent in time.
    pub async fn cut(&self, cut: Cut, within: Duration) -> bool {
        let (done, cut_off) = oneshot::channel();
        *lock(&self.armed) = Some(Armed { cut, done });
        timeout(within, cut_off).await.is_ok_and(|told| told.is_ok())
    }

    /// Falls silent for a while.
    pub async fn be_silent(&self, span: Duration, old: Old) {
        self.flow.send_replace(Flow::Silent);
        tokio::time::sleep(span).await;
        self.flow.send_replace(match old {
            Old::Resumed => Flow::Passing,
            Old::HalfOpen => Flow::PassingAnew,
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Pair {
    async fn pass(mut self) {
        let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            if *self.flow.borrow_and_update() == Flow::Silent && !self.outlasts_silence().await {
                return;
            }
            tokio::select! {
                changed = self.flow.changed() => if changed.is_err() { return },
                read = self.client.read(&mut asked) => {
                    let Ok(length @ 1..) = read else { return };
                    if !self.ask(&asked[..length], &mut answered).await {
                        return;
                    }
                }
                read = self.server.read(&mut answered) => {
                    let Ok(length @ 1..) = read else { return };
                    if self.client.write_all(&answered[..length]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Waits; a connection that nobody is told of stays until the link is dropped.
    async fn outlasts_silence(&mut self) -> bool {
        let after = self.flow.wait_for(|flow| *flow != Flow::Silent).await.map(|flow| *flow);
        if matches!(after, Ok(Flow::Passing)) {
            return true;
        }
        while self.flow.changed().await.is_ok() {}
        false
    }

    /// Passes on what the client asks; `false` if the connection is cut.
    async fn ask(&mut self, asked: &[u8], answered: &mut [u8]) -> bool {
        let armed = if asked.ends_with(COMMIT) { lock(&self.armed).take() } else { None };
        let Some(Armed { cut, done }) = armed else {
            return self.server.write_all(asked).await.is_ok();
        };
        if cut == Cut::BehindCommit {
            // The answer shows that it was done.
            let sent = self.server.write_all(asked).await.is_ok();
            if !sent || !matches!(self.server.read(answered).await, Ok(1..)) {
                return false;
            }
        }
        let _nobody_waits = done.send(());
        false
    }
}

fn lock(armed: &Mutex<Option<Armed>>) -> MutexGuard<'_, Option<Armed>> {
    armed.lock().unwrap_or_else(PoisonError::into_inner)
}
