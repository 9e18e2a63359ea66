use handstamp::idempotent;

#[idempotent(consumer = "credits", key = message_key)]
struct Credit(u32);

fn main() {}
