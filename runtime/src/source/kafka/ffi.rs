//! The librdkafka calls that rdkafka has no safe wrapper for.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::time::Duration;

use rdkafka::client::Client;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext};
use rdkafka::error::{RDKafkaErrorCode, RDKafkaErrorCode::OperationTimedOut};
use rdkafka::message::BorrowedMessage;
use rdkafka::{ClientContext, TopicPartitionList};
use rdkafka_sys as sys;
use rdkafka_sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
use rdkafka_sys::rd_kafka_resp_err_t::{RD_KAFKA_RESP_ERR__NOENT, RD_KAFKA_RESP_ERR_NO_ERROR};
use uuid::Uuid;

/// A queue of our own for the answers to our own requests.
struct Queue(*mut sys::rd_kafka_queue_t);

impl Queue {
    fn new<C: ConsumerContext>(consumer: &BaseConsumer<C>) -> Self {
        // SAFETY: the client outlives the queue, which never leaves the function that made it.
        Self(unsafe { sys::rd_kafka_queue_new(consumer.client().native_ptr()) })
    }

    fn poll(&self, limit: Duration) -> Option<Event> {
        let limit = c_int::try_from(limit.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: the queue is alive; a null event means that the limit passed.
        let event = unsafe { sys::rd_kafka_queue_poll(self.0, limit) };
        (!event.is_null()).then_some(Event(event))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: made by `rd_kafka_queue_new`, destroyed once. librdkafka keeps its own reference
        // for a request still under way.
        unsafe { sys::rd_kafka_queue_destroy(self.0) }
    }
}

struct Event(*mut sys::rd_kafka_event_t);

impl Event {
    fn error(&self) -> Result<(), RDKafkaErrorCode> {
        // SAFETY: the event is alive.
        match unsafe { sys::rd_kafka_event_error(self.0) } {
            RD_KAFKA_RESP_ERR_NO_ERROR => Ok(()),
            code => Err(code.into()),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: returned by `rd_kafka_queue_poll`, destroyed once.
        unsafe { sys::rd_kafka_event_destroy(self.0) }
    }
}

/// Gives a client the addresses of brokers that it once began with.
///
/// A cluster whose brokers are all fenced names none for a moment. librdkafka then forgets every broker, those it
/// began with included, and never connects again (seen in 2.12.1; its issue 5301). Brokers that it knows stay as
/// they are. Each call is remembered for good (some bytes), so it is made only while nobody answers.
pub(super) fn add_brokers<C: ClientContext>(client: &Client<C>, brokers: &str) {
    let Ok(brokers) = CString::new(brokers) else { return };
    // SAFETY: the client is alive, and the list is copied.
    unsafe { sys::rd_kafka_brokers_add(client.native_ptr(), brokers.as_ptr()) };
}

/// Lets the records of a partition come when the client is polled, or keeps them in a queue of their own until then.
///
/// A paused partition drops what was fetched. Nor does resuming it wake the thread that fetches: if that waits for
/// nothing else, up to a second passes (librdkafka 2.12.1). A queue that is only kept is full and delivers at once.
/// Assigning a partition lets its records come.
pub(super) fn deliver<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    partition: i32,
    deliver: bool,
) {
    let (client, Ok(topic)) = (consumer.client().native_ptr(), CString::new(topic)) else { return };
    // SAFETY: client and name are alive; both queues are references of our own, given back once, and librdkafka
    // keeps those that it needs.
    unsafe {
        let own = sys::rd_kafka_queue_get_partition(client, topic.as_ptr(), partition);
        let all = sys::rd_kafka_queue_get_consumer(client);
        if !own.is_null() && !all.is_null() {
            sys::rd_kafka_queue_forward(own, if deliver { all } else { ptr::null_mut() });
        }
        for queue in [own, all] {
            if !queue.is_null() {
                sys::rd_kafka_queue_destroy(queue);
            }
        }
    }
}

/// Ends a client that has met a fatal error, without leaving its group: nobody there counts on it any more.
///
/// Closing such a client may wait for a rebalance that it does not deliver: for ever, with a thread of librdkafka's that
/// takes a whole processor (seen in 2.12.1). Blocks until its threads have ended. Its context is not freed: callbacks may
/// still be using it.
pub(super) fn abandon<C: ConsumerContext>(consumer: BaseConsumer<C>) {
    let client = consumer.client().native_ptr();
    // Dropping it would close it.
    std::mem::forget(consumer);
    // SAFETY: the client is alive, this was the only handle, and it is destroyed once.
    unsafe { sys::rd_kafka_destroy_flags(client, sys::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE) }
}

/// Commits offsets and waits at most `limit` for the answer.
///
/// rdkafka's synchronous commit waits without bound (seen blocked for minutes on a frozen broker),
/// and its asynchronous one never tells the outcome.
pub(super) fn commit<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    offsets: &TopicPartitionList,
    limit: Duration,
) -> Result<(), RDKafkaErrorCode> {
    let queue = Queue::new(consumer);
    // SAFETY: client, list and queue are alive; librdkafka copies the list; there is no callback.
    let code = unsafe {
        sys::rd_kafka_commit_queue(
            consumer.client().native_ptr(),
            offsets.ptr(),
            queue.0,
            None,
            ptr::null_mut::<c_void>(),
        )
    };
    if code != RD_KAFKA_RESP_ERR_NO_ERROR {
        return Err(code.into());
    }
    queue.poll(limit).map_or(Err(OperationTimedOut), |event| event.error())
}

/// The ids of topics, in order; nil where the broker has none.
///
/// A topic that was deleted and created again under its name has another id: nothing else tells.
pub(super) fn topic_ids<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topics: &[&str],
    limit: Duration,
) -> Result<Vec<Result<Uuid, RDKafkaErrorCode>>, RDKafkaErrorCode> {
    // Any broker knows the ids. By default the controller would be asked, which a mock does not have.
    let metadata = consumer
        .fetch_metadata(topics.first().copied(), limit)
        .map_err(|error| error.rdkafka_error_code().unwrap_or(OperationTimedOut))?;
    let names: Vec<CString> = topics.iter().filter_map(|topic| CString::new(*topic).ok()).collect();
    let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let queue = Queue::new(consumer);
    // SAFETY: the names live until the end of the function; the request copies the collection and the
    // options, which are destroyed right after. A broker id that is refused leaves the default.
    unsafe {
        let client = consumer.client().native_ptr();
        let options = sys::rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBETOPICS);
        sys::rd_kafka_AdminOptions_set_broker(options, metadata.orig_broker_id(), ptr::null_mut(), 0);
        let collection = sys::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
        sys::rd_kafka_DescribeTopics(client, collection, options, queue.0);
        sys::rd_kafka_TopicCollection_destroy(collection);
        sys::rd_kafka_AdminOptions_destroy(options);
    }
    let event = queue.poll(limit).ok_or(OperationTimedOut)?;
    event.error()?;
    // SAFETY: the result and all that hangs on it live as long as the event.
    unsafe {
        let result = sys::rd_kafka_event_DescribeTopics_result(event.0);
        if result.is_null() {
            return Err(RDKafkaErrorCode::BadMessage);
        }
        let mut count = 0;
        let descriptions = sys::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
        let descriptions = (0..count).map(|index| *descriptions.add(index));
        Ok(descriptions.map(|description| topic_id(description)).collect())
    }
}

/// # Safety
/// The description must be alive.
unsafe fn topic_id(description: *const sys::rd_kafka_TopicDescription_t) -> Result<Uuid, RDKafkaErrorCode> {
    // SAFETY: the caller's promise; an absent error is null or has the code "no error".
    unsafe {
        let error = sys::rd_kafka_TopicDescription_error(description);
        if !error.is_null() {
            let code = sys::rd_kafka_error_code(error);
            if code != RD_KAFKA_RESP_ERR_NO_ERROR {
                return Err(code.into());
            }
        }
        let id = sys::rd_kafka_TopicDescription_topic_id(description);
        if id.is_null() {
            return Ok(Uuid::nil());
        }
        let high = sys::rd_kafka_Uuid_most_significant_bits(id).cast_unsigned();
        let low = sys::rd_kafka_Uuid_least_significant_bits(id).cast_unsigned();
        Ok(Uuid::from_u64_pair(high, low))
    }
}

/// Calls `each` with every header's name and value, as bytes.
///
/// rdkafka's own access panics when a header's name is not UTF-8 and takes unreadable headers for
/// none. A name that contains a NUL byte ends there: librdkafka tells no length.
pub(super) fn for_each_header(
    message: &BorrowedMessage<'_>,
    mut each: impl FnMut(&[u8], Option<&[u8]>),
) -> Result<(), RDKafkaErrorCode> {
    let mut headers = ptr::null_mut();
    // SAFETY: the message is alive for the whole function, and the headers belong to it.
    let code = unsafe { sys::rd_kafka_message_headers(message.ptr(), &raw mut headers) };
    match code {
        RD_KAFKA_RESP_ERR_NO_ERROR => {}
        RD_KAFKA_RESP_ERR__NOENT => return Ok(()),
        code => return Err(code.into()),
    }
    for index in 0.. {
        let (mut name, mut value, mut size) = (ptr::null(), ptr::null(), 0);
        // SAFETY: as above; an index past the end answers NOENT and touches nothing.
        let code = unsafe {
            sys::rd_kafka_header_get_all(headers, index, &raw mut name, &raw mut value, &raw mut size)
        };
        if code != RD_KAFKA_RESP_ERR_NO_ERROR {
            break;
        }
        // SAFETY: the name ends with NUL; a value that is not null has `size` bytes.
        let (name, value) = unsafe {
            let value = (!value.is_null()).then(|| std::slice::from_raw_parts(value.cast::<u8>(), size));
            (CStr::from_ptr(name).to_bytes(), value)
        };
        each(name, value);
    }
    Ok(())
}
