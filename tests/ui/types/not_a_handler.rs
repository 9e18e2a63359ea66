use handstamp::Handler;

struct Credit;

fn consume<H: Handler>() {}

fn main() {
    consume::<Credit>();
}
