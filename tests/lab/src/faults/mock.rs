use std::ffi::c_int;
use std::time::Duration;

use anyhow::{Result, ensure};
use handstamp_tests::{TestTopic, unique};
use rdkafka::ClientConfig;
use rdkafka::mocking::{MockCluster, MockCoordinator};
use rdkafka::producer::{BaseProducer, DefaultProducerContext, Producer};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use rdkafka_sys as sys;
use rdkafka_sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR;
use tokio::time::{Instant, sleep};

use super::member::PATIENCE;

/// The ids of its brokers.
pub static BROKERS: [i32; 2] = [1, 2];
/// A rebalance takes a second less than this.
pub const SESSION_MS: u32 = 2_200;
/// How long the first member of a group is held; by default longer than its session.
const FIRST_JOIN_MS: i32 = 500;

/// librdkafka's mock of a cluster: it speaks the real protocol to any process of this machine, and answers as
/// it is told. It trims partitions of 5 MiB without a word, which the end of a stage would notice.
pub struct Mock {
    /// Owns it.
    client: BaseProducer,
}

/// An answer that brokers are to give.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    brokers: &'static [i32],
    request: RDKafkaApiKey,
    left_before: usize,
}

impl Mock {
    pub fn start() -> Result<Self> {
        let brokers = BROKERS.len().to_string();
        let client: BaseProducer = ClientConfig::new().set("test.mock.num.brokers", &brokers).create()?;
        let mock = Self { client };
        // SAFETY: the client and its cluster are alive.
        unsafe { sys::rd_kafka_mock_group_initial_rebalance_delay_ms(mock.native(), FIRST_JOIN_MS) };
        Ok(mock)
    }

    /// Its bootstrap servers.
    pub fn servers(&self) -> String {
        self.cluster().bootstrap_servers()
    }

    /// A topic with a name of its own.
    pub fn create_topic(&self, partitions: i32) -> Result<TestTopic> {
        let name = unique("topic");
        self.cluster().create_topic(&name, partitions, 1)?;
        Ok(TestTopic::named(&self.servers(), &name))
    }

    /// Makes a broker the coordinator of a group.
    pub fn coordinate(&self, group: &str, broker: i32) -> Result<()> {
        Ok(self.cluster().coordinator(MockCoordinator::Group(group.to_owned()), broker)?)
    }

    /// The next request of this kind to each of these brokers is answered with an error; one that is
    /// "transport" cuts the connection, and "no error" only shows that the request came.
    pub fn prepare(
        &self,
        brokers: &'static [i32],
        request: RDKafkaApiKey,
        error: RDKafkaRespErr,
    ) -> Result<Answer> {
        let left = self.left(brokers, request)?;
        for broker in brokers {
            self.push(*broker, request, error)?;
        }
        Ok(Answer { brokers, request, left_before: left + brokers.len() })
    }

    /// Waits until one of the brokers has given the answer; whether it did before patience ended.
    pub async fn until_given(&self, answer: &Answer) -> Result<bool> {
        let deadline = Instant::now() + PATIENCE;
        while self.left(answer.brokers, answer.request)? >= answer.left_before {
            if Instant::now() > deadline {
                return Ok(false);
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(true)
    }

    fn push(&self, broker: i32, request: RDKafkaApiKey, error: RDKafkaRespErr) -> Result<()> {
        // SAFETY: the cluster is alive, and there is one pair of error and delay, both C ints.
        let code = unsafe {
            sys::rd_kafka_mock_broker_push_request_error_rtts(
                self.native(),
                broker,
                request.into(),
                1,
                error as c_int,
                0 as c_int,
            )
        };
        ensure!(code == RD_KAFKA_RESP_ERR_NO_ERROR, "broker {broker} was not told its answer: {code:?}");
        Ok(())
    }

    /// How many answers to such requests were not given yet.
    fn left(&self, brokers: &[i32], request: RDKafkaApiKey) -> Result<usize> {
        let mut all = 0;
        for broker in brokers {
            let mut left = 0;
            // SAFETY: the cluster is alive, and the count is written before the call returns.
            let code = unsafe {
                sys::rd_kafka_mock_broker_error_stack_cnt(
                    self.native(),
                    *broker,
                    request.into(),
                    &raw mut left,
                )
            };
            ensure!(code == RD_KAFKA_RESP_ERR_NO_ERROR, "broker {broker} does not count: {code:?}");
            all += left;
        }
        Ok(all)
    }

    fn cluster(&self) -> MockCluster<'_, DefaultProducerContext> {
        self.client.client().mock_cluster().expect("the client was made with one")
    }

    fn native(&self) -> *mut sys::rd_kafka_mock_cluster_t {
        // SAFETY: the client is alive, and owns the cluster.
        unsafe { sys::rd_kafka_handle_mock_cluster(self.client.client().native_ptr()) }
    }
}
