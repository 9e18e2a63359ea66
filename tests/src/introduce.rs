//! Clients that have forgotten all brokers.

use std::ffi::CString;

use rdkafka::ClientContext;
use rdkafka::client::Client;
use rdkafka_sys as sys;

/// Gives a client the addresses that it began with. A broker that was frozen names no brokers for a moment when
/// it comes back, and librdkafka then forgets them all for good.
pub fn introduce<C: ClientContext>(client: &Client<C>, brokers: &str) {
    let brokers = CString::new(brokers).expect("addresses have no NUL");
    // SAFETY: the client is alive, and the list is copied.
    unsafe { sys::rd_kafka_brokers_add(client.native_ptr(), brokers.as_ptr()) };
}
