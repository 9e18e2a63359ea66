//! Keys as the attribute says them, read from messages.

mod stored;
mod webhooks;
