use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = message_key)]
async fn credit(_: Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
    let shared = std::rc::Rc::new(1);
    std::future::ready(()).await;
    drop(shared);
    Ok(())
}

fn main() {}
