//! `#[idempotent]`: makes an `async fn` the handler of a consumer.
//!
//! A message runs through the code of this workspace as follows; the attribute is where it all meets.
//!
//! ```text
//! #[idempotent(…)] async fn credit(…)      macros     what the user writes, checked and implemented
//!   impl Handler for credit                runtime/src/handler.rs      what is generated, and nothing more
//! Worker::builder(pool).consume::<credit>  runtime/src/worker/         wires the rest, shuts it down in order
//!   source ─► flow                         runtime/src/source/, flow/  messages in, offsets out; decides, without I/O
//!   apply                                  runtime/src/apply/          one message: key, claim, handler, guard, commit
//!     key, message, inbox                  runtime/src/{key,message,inbox}/
//!   failure                                runtime/src/failure/        retried, parked, or stopped for
//! ```
//!
//! # How the attribute is expanded
//!
//! One step, one file; what a step hands on is never checked again.
//!
//! | step | file |
//! |---|---|
//! | the attribute as `name = value` | `args.rs` |
//! | the function's head; its body is never parsed | `function.rs` |
//! | values: keys, durations, the other options | `key.rs`, `recipe.rs`, `pointer.rs`, `ignored.rs`, `duration.rs`, `setting.rs` |
//! | whether the function can be a handler, by tokens alone | `handler.rs`, `types.rs` |
//! | all of it, validated, or every mistake at once | `model.rs`, `errors.rs`, `spelling.rs` |
//! | the generated code | `expand.rs` |
//! | what stands in for a handler with mistakes | `fallback.rs` |
//!
//! What tokens cannot decide (is this an extractor, a connection, a result?) is left to the bounds of
//! `Handler` and `Takes`, whose messages the compiler reports at the type as the user wrote it. Every such
//! message is pinned by a file under `tests/ui`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod args;
mod duration;
mod errors;
mod expand;
mod fallback;
mod function;
mod handler;
mod ignored;
mod key;
mod model;
mod pointer;
mod recipe;
mod setting;
mod spelling;
mod types;

use proc_macro::TokenStream;

/// Makes an `async fn` a handler: each message's effects are applied once per consumer and key.
///
/// ```ignore
/// use handstamp::{Json, idempotent};
/// use sqlx::PgConnection;
///
/// #[idempotent(consumer = "wallet-credits", key = header("event_id"))]
/// async fn credit(Json(deposit): Json<Deposit>, conn: &mut PgConnection) -> sqlx::Result<()> {
///     sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = $2")
///         .bind(deposit.amount)
///         .bind(deposit.account_id)
///         .execute(conn)
///         .await?;
///     Ok(())
/// }
/// ```
///
/// The function stays as it is, and a unit test calls it like any other. Beside it stands a type of the same
/// name that implements `handstamp::Handler`: `worker.consume::<credit>("deposits")` feeds it from Kafka,
/// `handstamp::apply::<credit>(&pool, &message)` from anything else. One `use` imports both.
///
/// # The function
///
/// - It is a free, concrete `async fn`, and its future is `Send`; or a plain `fn` that takes `&mut Effects`, see below.
/// - It takes exactly one connection as `&mut`: `&mut PgConnection`, `&mut SqliteConnection`, or
///   `&mut Inbox<DB>`, which also knows the message's key and attempt. All that is written through it commits
///   together with the message's id, or not at all.
/// - What else it takes is read from the message (or from many, see below), by value and in any order: `Json<T>`,
///   `Option<Json<T>>` (`None` for a tombstone), `Payload`, `Text`, `Headers`, `EventId`, `Position`, `Message`, `State<T>`, or
///   a type of your own that implements `FromMessage`. An argument may stand under `#[cfg(…)]`.
/// - It returns `Result<(), E>`, where `E` converts into `Box<dyn Error + Send + Sync>`. An error rolls everything
///   back and is tried again, then parked as a dead letter; `handstamp::reject(…)` parks at once.
///
/// # Options
///
/// | option | value | if absent |
/// |---|---|---|
/// | `consumer` | the name its messages are remembered under, and by default the Kafka group: 1 to 200 of `a-z A-Z 0-9 . _ -`. Another name later is refused at start, since it would make every message new again | required |
/// | `key` | what makes two deliveries the same message, see below | required |
/// | `order` | which messages of a partition are applied one after the other: all of a `partition`, those of one Kafka message `key`, or `none`; see below | `partition` |
/// | `batch` | how many messages of a backlog one transaction may hold, from 1 (each on its own) to 10,000; see below | 500, or 5,000 where they are written together (`Vec`s, `Effects`) |
/// | `attempts` | how often a failing message is tried before it is parked, from 1 | 5 |
/// | `timeout` | the longest one call may take: `"500 ms"`, `"30 seconds"`, `"2 minutes"`, up to `"1 day"` | 30 seconds |
/// | `start_at` | where a consumer that has never run starts: `earliest` or `latest` | `earliest` |
/// | `on_tombstone` | a message without the payload that the handler needs: `skip` or `park` | `skip` |
/// | `on_out_of_range` | the offset to read from has been deleted: `stop`, or go on at the `earliest` there is | `stop` |
///
/// # Batches
///
/// Messages of a partition that wait are applied together: the handler is called for each, in order, and what it
/// wrote commits with all their ids at once. As many as handlers need about 50 ms for (longer, up to half a second,
/// where the database takes long to commit), up to `batch`; one that comes alone does not wait for others. If one
/// fails nothing is kept, and each is run again in a transaction of its own, so that only the one at fault is tried
/// again or parked. So a call may be undone for a neighbour's sake: what a handler does outside the database needs an
/// idempotency key in any case. `now()` is the same for all messages of a batch, and
/// rows that one has written are locked until the last is done. `batch = 1` turns it off.
///
/// # Order
///
/// With `order = partition` a message that is slow, or tried again, holds up all behind it. With `order = key` it holds
/// up those of its Kafka message key, which stay in order, retries included, and few others: keys are spread over 16
/// tracks that run side by side, and some share one. Messages without a message key have no order. With `order = none`
/// each goes to whichever track has time for it next, and one that is tried again holds up nothing but its track.
///
/// - There are as many transactions at a time as tracks have something to do, but never more than the pool allows;
///   partitions take turns. They commit one after the other, since each writes the progress of the partition: what
///   runs side by side is the work of the handlers.
/// - Kafka's offset stays at the lowest message that is not dealt with. After a crash those behind it come again, and
///   are known. Once 10,000 messages of a partition wait, no more are fetched until half of them are done: a key that
///   is slow for long, and has many messages, stops the others in the end.
/// - A message that is parked lets later ones of its key pass, as with `order = partition`.
/// - Handlers side by side that write the same rows wait for each other, and may deadlock. Of a deadlock the database
///   gives one up, which is run again with fewer messages. Where the message key names the row, there are none.
/// - On SQLite, where one transaction writes at a time, every order is that of the partition.
///
/// # Many messages at a time
///
/// A handler that takes `Vec`s is called once for all that a transaction holds, so that it can write them with one
/// statement. Each `Vec` has an element for each message, in the same order; `State<T>` is there once.
///
/// ```ignore
/// #[idempotent(consumer = "wallet-credits", key = header("event_id"), batch = 2_000)]
/// async fn credit(deposits: Vec<Json<Deposit>>, conn: &mut PgConnection) -> sqlx::Result<()> {
///     let accounts: Vec<i64> = deposits.iter().map(|Json(deposit)| deposit.account_id).collect();
///     let amounts: Vec<i64> = deposits.iter().map(|Json(deposit)| deposit.amount).collect();
///     sqlx::query(
///         "UPDATE accounts SET balance = balance + sums.amount
///          FROM (SELECT account, sum(amount)::int8 AS amount
///                FROM unnest($1::int8[], $2::int8[]) AS deposit (account, amount) GROUP BY account) AS sums
///          WHERE accounts.id = sums.account",
///     )
///     .bind(accounts)
///     .bind(amounts)
///     .execute(conn)
///     .await?;
///     Ok(())
/// }
/// ```
///
/// It is given every event once: what was applied before, and a second copy in the same transaction, are left out.
/// What cannot be read is parked beside it. If it fails, it is given half of the messages, and so on, until the one at
/// fault stands alone; only that one is tried again and parked. `attempts` and `timeout` are per call.
///
/// # Write-only handlers
///
/// Most handlers read nothing from the database, and the way there and back is what they cost. A plain `fn` that takes
/// `&mut Effects` instead of a connection records its statements:
///
/// ```ignore
/// #[idempotent(consumer = "wallet-credits", key = header("event_id"))]
/// fn credit(Json(deposit): Json<Deposit>, fx: &mut Effects) -> Result<(), BoxError> {
///     let arguments = (deposit.amount, deposit.account_id);
///     fx.execute("UPDATE accounts SET balance = balance + $1 WHERE id = $2", arguments).expect_rows(1);
///     Ok(())
/// }
/// ```
///
/// Those of all messages of a transaction are run in their order once the last call has returned, in two round trips
/// (PostgreSQL only). If one fails nothing is kept, and halves are tried until the message at fault stands alone. A unit
/// test calls such a handler without a database, and looks at what it recorded.
///
/// # Keys
///
/// A message without a usable key is parked; a key is never guessed.
///
/// | key | what it is |
/// |---|---|
/// | `header("event_id")` | the one header of that name, spelt exactly so |
/// | `http_header("X-Request-Id")` | the same, in any letter case: for headers that came by HTTP and were handed on |
/// | `json("/order/id")` | a string or an integer in the payload, by JSON pointer (RFC 6901) |
/// | `json("/order_id", "/line")` | several of them, together |
/// | `message_key` | the message's own key |
/// | `cloudevents` | `source` and `id` of a `CloudEvent`, in binary or structured mode |
/// | `content_hash`, `content_hash(ignore = ["/trace_id"])` | SHA-256 of the payload as canonical JSON (RFC 8785), without what is ignored. The last resort: two events that say the same are one |
/// | `position` | topic, partition and offset. Weaker: what a producer sends again is a new message |
/// | `uuid(header("event_id"))` | a header, one `json` pointer, `message_key` or `with` as a UUID: 16 bytes, however it is spelt; as text, two spellings are two keys |
/// | `unquoted(header("event_id"))` | a header or `message_key` that some producers send in JSON quotes: `"evt-9"` and `evt-9` are one key |
/// | `(header("tenant"), json("/id"))` | several keys together, in this order |
/// | `with(path::to::function)` | a `fn(&Message) -> Result<Key, KeyError>` of your own |
///
/// Webhooks that are handed on to Kafka have keys by the name of their sender. Each stands for a key that could be
/// written out, and can be a part of a tuple.
///
/// | key | stands for | what it is |
/// |---|---|---|
/// | `stripe` | `json("/id")` | the event. Stripe sometimes creates two events for one change; these have two ids |
/// | `stripe_object` | `json("/data/object/id", "/type")` | the object and what happened to it. For types that happen to an object once, such as `invoice.paid`; a second `charge.refunded` would pass for the first |
/// | `shopify` | `http_header("X-Shopify-Webhook-Id")` | the delivery, which keeps it when sent again. With two subscriptions to a topic the event comes twice, as two deliveries; `(http_header("X-Shopify-Topic"), http_header("X-Shopify-Event-Id"))` makes one of them, but also of all the objects of that topic that one action of the merchant changed |
/// | `github` | `uuid(http_header("X-GitHub-Delivery"))` | the event; a redelivery keeps it |
///
/// A number in a `json` key is its digits as written, and must be an integer; `1` and `"1"` are one key. In a
/// `content_hash` it is its exact value: `1`, `1.0` and `1e0` are one, and no two ids are. A repeated member on the way
/// to a `json` key is refused, and anywhere in what is hashed.
#[proc_macro_attribute]
pub fn idempotent(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::idempotent(attribute.into(), &item.into()).into()
}

/// Puts the generated implementation behind the struct that carries it. Not public API.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn beside(implementation: TokenStream, mut declaration: TokenStream) -> TokenStream {
    declaration.extend(implementation);
    declaration
}
