use handstamp::{Json, idempotent};
use sqlx::PgConnection;

#[idempotent(consumer = "credits", key = content_hash(ignore = ["/trace/id", "/trace"]))]
async fn credit(Json(_): Json<u32>, _: &mut PgConnection) -> sqlx::Result<()> {
    Ok(())
}

fn main() {}
