//! Keys by the name of who sends the event. Each is written out into the key it stands for, so that the
//! database remembers what is read, and errors name the part at fault.

/// The words and what they stand for. The facts behind them, as of 2026:
///
/// - Stripe, <https://docs.stripe.com/webhooks>, "Handle duplicate events": an event that is sent again keeps
///   its `id`; two events that were created for one change have the same `data.object.id` and `type`.
/// - Shopify, <https://shopify.dev/docs/apps/build/webhooks/delivery-structure>: `X-Shopify-Webhook-Id` is there
///   to recognise a delivery that is sent again. `X-Shopify-Event-Id` is shared by all that one action of a
///   merchant sets off, so by itself it would swallow the rest of it.
/// - GitHub, <https://docs.github.com/webhooks/using-webhooks/best-practices-for-using-webhooks>:
///   `X-GitHub-Delivery` is a GUID for each event, and a redelivery keeps it.
pub const RECIPES: [(&str, &str); 4] = [
    ("stripe", r#"json("/id")"#),
    ("stripe_object", r#"(json("/data/object/id"), json("/type"))"#),
    ("shopify", r#"http_header("X-Shopify-Webhook-Id")"#),
    ("github", r#"uuid(http_header("X-GitHub-Delivery"))"#),
];
