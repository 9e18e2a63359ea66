use handstamp::{BoxError, Effects, EventId, Handler, idempotent};

#[idempotent(consumer = "c", key = header("event_id"))]
fn credit(EventId(id): EventId, fx: &mut Effects) -> Result<(), BoxError> {
    fx.execute("DELETE FROM a WHERE b = $1", (id,)).expect_rows(1);
    Ok(())
}

#[idempotent(consumer = "d", key = header("event_id"))]
fn credit_many(fx: &mut handstamp::Effects, ids: Vec<EventId>) -> Result<(), BoxError> {
    fx.execute("DELETE FROM a", ());
    drop(ids);
    Ok(())
}

fn main() {
    let mut fx = Effects::new();
    credit(EventId("evt-1".into()), &mut fx).unwrap();
    credit_many(&mut fx, vec![]).unwrap();
    let [first, second] = fx.recorded() else { panic!("two are recorded") };
    assert_eq!(first.arguments(), Some(&("evt-1".to_owned(),)));
    assert_eq!((first.sql(), first.expected_rows()), ("DELETE FROM a WHERE b = $1", Some(1)));
    assert_eq!((second.sql(), second.expected_rows()), ("DELETE FROM a", None));
    assert_eq!(<credit_many as Handler>::CONSUMER, "d");
}
