//! Records that rdkafka cannot write: it takes header names as text only.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::producer::{BaseProducer, DeliveryResult, Producer, ProducerContext};
use rdkafka::{ClientConfig, ClientContext, Message};
use rdkafka_sys as sys;

use crate::Record;

/// Takes the one delivery report.
#[derive(Default)]
struct Report(Mutex<Option<Result<(i32, i64), String>>>);

impl ClientContext for Report {}

impl ProducerContext for Report {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let report = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.to_string()),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

/// Writes one record, and returns its partition and offset. Blocks.
pub(crate) fn produce(config: &ClientConfig, topic: &str, record: &Record) -> (i32, i64) {
    let producer: BaseProducer<Report> =
        config.create_with_context(Report::default()).expect("a producer can be made");
    enqueue(&producer, topic, record);
    producer.flush(Duration::from_mins(1)).expect("the record is sent within a minute");
    let report = producer.context().0.lock().unwrap_or_else(PoisonError::into_inner).take();
    report.expect("a flushed record has its report").unwrap_or_else(|error| panic!("not delivered: {error}"))
}

fn enqueue(producer: &BaseProducer<Report>, topic: &str, record: &Record) {
    use sys::rd_kafka_vtype_t as vtype;
    let topic = CString::new(topic).expect("a topic's name has no NUL");
    let mut arguments = vec![
        argument(vtype::RD_KAFKA_VTYPE_TOPIC, |u| u.cstr = topic.as_ptr()),
        argument(vtype::RD_KAFKA_VTYPE_MSGFLAGS, |u| u.i = sys::RD_KAFKA_MSG_F_COPY),
        argument(vtype::RD_KAFKA_VTYPE_PARTITION, |u| u.i32_ = record.partition.unwrap_or(-1)),
        argument(vtype::RD_KAFKA_VTYPE_HEADERS, |u| u.headers = headers(record)),
    ];
    let bytes = |bytes: &Option<Vec<u8>>| sys::rd_kafka_vu_s__bindgen_ty_1__bindgen_ty_1 {
        ptr: bytes.as_ref().map_or(ptr::null_mut(), |bytes| bytes.as_ptr().cast_mut().cast()),
        size: bytes.as_ref().map_or(0, Vec::len),
    };
    arguments.push(argument(vtype::RD_KAFKA_VTYPE_KEY, |u| u.mem = bytes(&record.key)));
    arguments.push(argument(vtype::RD_KAFKA_VTYPE_VALUE, |u| u.mem = bytes(&record.payload)));
    // SAFETY: the client lives as long as `producer`; every pointer in the arguments does until the call
    // returns, and MSG_F_COPY makes librdkafka copy key and payload. It takes the headers over on success.
    let error = unsafe {
        sys::rd_kafka_produceva(producer.client().native_ptr(), arguments.as_ptr(), arguments.len())
    };
    assert!(error.is_null(), "librdkafka does not take the record");
}

fn argument(
    vtype: sys::rd_kafka_vtype_t,
    set: impl FnOnce(&mut sys::rd_kafka_vu_s__bindgen_ty_1),
) -> sys::rd_kafka_vu_t {
    let mut value = sys::rd_kafka_vu_s__bindgen_ty_1 { _pad: [0; 64] };
    set(&mut value);
    sys::rd_kafka_vu_t { vtype, u: value }
}

fn headers(record: &Record) -> *mut sys::rd_kafka_headers_t {
    let length = |bytes: &[u8]| isize::try_from(bytes.len()).expect("a slice is no longer than isize::MAX");
    // SAFETY: no precondition.
    let headers = unsafe { sys::rd_kafka_headers_new(record.headers.len()) };
    for (name, value) in &record.headers {
        let (value, size) = match value {
            Some(value) => (value.as_ptr().cast(), length(value)),
            None => (ptr::null(), 0),
        };
        // SAFETY: `headers` was made above; name and value are copied, with their lengths given.
        unsafe {
            sys::rd_kafka_header_add(headers, name.as_ptr().cast::<c_char>(), length(name), value, size);
        }
    }
    headers
}
