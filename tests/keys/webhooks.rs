//! Webhooks that were handed on to Kafka.

use std::collections::BTreeSet;

use handstamp::{Handler, KeySource, Message, idempotent};
use sqlx::PgConnection;

macro_rules! keys {
    ($($name:ident: $key:expr;)*) => {
        $(
            #[idempotent(consumer = "webhooks", key = $key)]
            async fn $name(_: &mut PgConnection) -> sqlx::Result<()> {
                Ok(())
            }
        )*
    };
}

keys! {
    stripe: stripe;
    stripe_object: stripe_object;
    shopify: shopify;
    shopify_event: (http_header("X-Shopify-Topic"), http_header("X-Shopify-Event-Id"));
    shopify_of_shop: (http_header("X-Shopify-Shop-Domain"), shopify);
    github: github;
}

/// How many of the messages are applied.
fn applied<H: Handler>(messages: &[Message]) -> usize {
    messages
        .iter()
        .map(|message| H::KEY.read(message).expect("a key").stored())
        .collect::<BTreeSet<_>>()
        .len()
}

fn reason(key: KeySource, message: &Message) -> String {
    key.read(message).expect_err("no key").to_string()
}

fn stripe_event(id: &str, kind: &str) -> Message {
    let object = r#"{"id":"in_1","amount_paid":500}"#;
    let event = format!(r#"{{"id":"{id}","object":"event","type":"{kind}","data":{{"object":{object}}}}}"#);
    Message::builder().payload(event).build()
}

fn shopify_delivery(webhook: &str, event: &str, topic: &str) -> Message {
    Message::builder()
        .header("X-Shopify-Topic", topic)
        .header("X-Shopify-Shop-Domain", "a.myshopify.com")
        .header("X-Shopify-Webhook-Id", webhook)
        .header("X-Shopify-Event-Id", event)
        .build()
}

fn shopify_deliveries() -> [Message; 4] {
    [
        shopify_delivery("W1", "E1", "orders/paid"),
        shopify_delivery("W1", "E1", "orders/paid"),
        shopify_delivery("W2", "E1", "orders/updated"),
        shopify_delivery("W3", "E1", "orders/paid"),
    ]
}

#[test]
fn c31_an_event_that_stripe_sends_again_is_a_duplicate() {
    let [first, again] = [stripe_event("evt_1A", "invoice.paid"), stripe_event("evt_1A", "invoice.paid")];
    assert_eq!(applied::<stripe>(&[first, again]), 1);
}

#[test]
fn two_events_that_stripe_created_for_one_change_are_one_by_their_object() {
    let events = [stripe_event("evt_1A", "invoice.paid"), stripe_event("evt_1B", "invoice.paid")];
    assert_eq!((applied::<stripe>(&events), applied::<stripe_object>(&events)), (2, 1));
}

#[test]
fn what_happens_to_one_object_of_stripe_is_told_apart_by_its_type() {
    let events = [stripe_event("evt_1A", "invoice.created"), stripe_event("evt_1B", "invoice.paid")];
    assert_eq!(applied::<stripe_object>(&events), 2);
}

#[test]
fn c32_deliveries_of_shopify_are_told_apart_by_the_webhooks_id() {
    assert_eq!(applied::<shopify>(&shopify_deliveries()), 3);
}

#[test]
fn c32_events_of_shopify_are_told_apart_by_topic_and_event_id() {
    assert_eq!(applied::<shopify_event>(&shopify_deliveries()), 2);
}

#[test]
fn c32_a_missing_id_of_shopify_is_told_and_no_other_header_taken_for_it() {
    let message = Message::builder().header("X-Shopify-Event-Id", "E1").build();
    assert_eq!(
        reason(<shopify as Handler>::KEY, &message),
        r#"http_header("X-Shopify-Webhook-Id"): missing"#
    );
}

#[test]
fn c32_equal_ids_of_two_shops_are_two_events_where_the_shop_is_part_of_the_key() {
    let of = |shop: &str| {
        Message::builder().header("x-shopify-shop-domain", shop).header("x-shopify-webhook-id", "W1").build()
    };
    let deliveries = [of("a.myshopify.com"), of("b.myshopify.com")];
    assert_eq!(applied::<shopify_of_shop>(&deliveries), 2);
}

#[test]
fn a_redelivery_of_github_is_a_duplicate_however_a_relay_spells_it() {
    let delivery = |name: &str, id: &str| Message::builder().header(name, id).build();
    let deliveries = [
        delivery("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
        delivery("x-github-delivery", "72D3162E-CC78-11E3-81AB-4C9367DC0958"),
    ];
    assert_eq!(applied::<github>(&deliveries), 1);
}

#[test]
fn a_delivery_of_github_without_a_guid_is_told() {
    let message = Message::builder().header("X-GitHub-Delivery", "hello").build();
    assert_eq!(
        reason(<github as Handler>::KEY, &message),
        r#"uuid(http_header("X-GitHub-Delivery")): not a UUID: `hello`"#
    );
}
