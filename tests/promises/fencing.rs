//! A cluster that answers and names no broker at all: what clients of Kafka see for a moment when every
//! broker they can reach has been fenced by its controller, as after a freeze or in a rolling upgrade.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use handstamp::{Publisher, Record};
use handstamp_tests::{PrivateKafka, Running, eventually, postgres_url};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::credit::credit;
use crate::scene::{SOON, Scene, event};

/// How long a client may take that has forgotten all brokers.
const RECOVERY: Duration = Duration::from_secs(40);

#[tokio::test]
async fn a_worker_that_was_told_of_no_brokers_finds_them_again() {
    let (_kafka, link, scene) = behind_a_link().await;
    let mut worker = Running::start(scene.worker().consume::<credit>(scene.topic.name()));
    scene.topic.produce(event("evt-0")).await;
    worker.until_done(1).await;
    link.name_no_brokers().await;
    // Of the test's own clients none has asked meanwhile.
    scene.topic.produce(event("evt-1")).await;
    eventually(RECOVERY, async || {
        let effects = scene.effects().await.len();
        ensure!(effects == 2, "{effects} of 2");
        Ok(())
    })
    .await;
    worker.stop().await.expect("a good end");
}

#[tokio::test]
async fn a_worker_that_is_told_of_no_brokers_at_its_start_finds_them() {
    let (_kafka, link, scene) = behind_a_link().await;
    scene.topic.produce(event("evt-0")).await;
    let (worker, ()) = tokio::join!(
        async { Running::start(scene.worker().consume::<credit>(scene.topic.name())) },
        link.name_no_brokers()
    );
    eventually(RECOVERY, async || {
        let effects = scene.effects().await.len();
        ensure!(effects == 1, "{effects} of 1");
        Ok(())
    })
    .await;
    worker.stop().await.expect("a good end");
}

#[tokio::test]
async fn a_publisher_that_was_told_of_no_brokers_finds_them_again() {
    let (_kafka, link, scene) = behind_a_link().await;
    let often = scene.kafka().property("topic.metadata.refresh.interval.ms", "500");
    let publisher = Publisher::new(&often).expect("a producer can be made");
    let record = Record::to(scene.topic.name()).payload("{}");
    publisher.publish(record.clone()).await.expect("a broker");
    link.name_no_brokers().await;
    let again = tokio::time::timeout(RECOVERY, publisher.publish(record)).await;
    again.expect("it does not wait for ever").expect("a broker");
    assert_eq!(scene.topic.read_all().await.len(), 2);
}

async fn behind_a_link() -> (PrivateKafka, Link, Scene) {
    let link = Link::bind().await;
    let kafka = PrivateKafka::with_properties(&link.property()).await;
    link.lead_to(kafka.brokers());
    let scene = Scene::on(&postgres_url(), &link.address(), 1).await;
    (kafka, link, scene)
}

/// What clients take for the broker. Kafka itself names it as its address.
struct Link {
    listener: Mutex<Option<TcpListener>>,
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    nameless: AtomicBool,
    told: AtomicUsize,
}

impl Link {
    async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        Self { listener: Mutex::new(Some(listener)), port, state: Arc::default() }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn property(&self) -> String {
        format!("advertised.listeners=PLAINTEXT://{}", self.address())
    }

    fn lead_to(&self, brokers: &str) {
        let listener = self.listener.try_lock().ok().and_then(|mut listener| listener.take());
        let listener = listener.expect("it leads nowhere yet");
        let (brokers, state) = (brokers.to_owned(), Arc::clone(&self.state));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&brokers).await else { continue };
                tokio::spawn(pass(client, server, Arc::clone(&state)));
            }
        });
    }

    /// Answers as a fenced cluster does, until somebody has been told so and nobody asks again.
    async fn name_no_brokers(&self) {
        self.state.nameless.store(true, Ordering::SeqCst);
        eventually(SOON, async || {
            ensure!(self.state.told.load(Ordering::SeqCst) > 0, "nobody asks");
            Ok(())
        })
        .await;
        // The state of the cluster itself, not a wait for anything: what was asked at once is answered so, too.
        sleep(Duration::from_secs(3)).await;
        self.state.nameless.store(false, Ordering::SeqCst);
    }
}

/// Passes requests and answers on, one frame after the other.
async fn pass(client: TcpStream, server: TcpStream, state: Arc<State>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asked_for_metadata = Mutex::new(HashSet::new());
    let requests = async {
        loop {
            let frame = read_frame(&mut from_client).await?;
            if let [0, METADATA, 0, version, correlation @ ..] = &frame[..] {
                assert!(*version >= FLEXIBLE, "version {version} of a metadata request is written otherwise");
                asked_for_metadata.lock().await.insert(correlation[..4].to_vec());
            }
            write_frame(&mut to_server, &frame).await?;
        }
    };
    let answers = async {
        loop {
            let mut frame = read_frame(&mut from_server).await?;
            let is_metadata = asked_for_metadata.lock().await.remove(&frame[..4]);
            if is_metadata && state.nameless.load(Ordering::SeqCst) {
                frame = without_brokers(&frame);
                state.told.fetch_add(1, Ordering::SeqCst);
            }
            write_frame(&mut to_client, &frame).await?;
        }
    };
    let _closed: io::Result<()> = tokio::select! { end = requests => end, end = answers => end };
}

/// The API key of metadata requests,
const METADATA: u8 = 3;
/// and the version since which lists are written with a compact length.
const FLEXIBLE: u8 = 9;

/// A metadata answer (<https://kafka.apache.org/protocol#The_Messages_Metadata>) with an empty list of brokers.
fn without_brokers(frame: &[u8]) -> Vec<u8> {
    // Correlation id, no tags, throttle time.
    let (head, mut rest) = frame.split_at(4 + 1 + 4);
    for _broker in 1..varint(&mut rest) {
        skip(&mut rest, 4);
        let host = varint(&mut rest);
        skip(&mut rest, host - 1 + 4);
        let rack = varint(&mut rest);
        skip(&mut rest, rack.saturating_sub(1));
        assert_eq!(varint(&mut rest), 0, "a broker has no tags");
    }
    [head, &[1], rest].concat()
}

fn varint(bytes: &mut &[u8]) -> usize {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
        shift += 7;
    }
}

fn skip(bytes: &mut &[u8], count: usize) {
    *bytes = &bytes[count..];
}

async fn read_frame(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = from.read_i32().await?;
    let mut frame = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    from.read_exact(&mut frame).await?;
    Ok(frame)
}

async fn write_frame(to: &mut (impl AsyncWrite + Unpin), frame: &[u8]) -> io::Result<()> {
    to.write_i32(i32::try_from(frame.len()).map_err(io::Error::other)?).await?;
    to.write_all(frame).await
}
