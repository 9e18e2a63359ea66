//! The servers that all tests share.

use std::env;

const MISSING: &str = "no services: start them with `tests/services up` and `eval \"$(tests/services env)\"`, or \
                       run everything with `tests/run`";

/// The URL of a PostgreSQL superuser's connection, from `DATABASE_URL`.
#[must_use]
pub fn postgres_url() -> String {
    given(env::var("DATABASE_URL").ok())
}

/// The bootstrap servers of Kafka, from `KAFKA_BROKERS`.
#[must_use]
pub fn kafka_brokers() -> String {
    given(env::var("KAFKA_BROKERS").ok())
}

fn given(value: Option<String>) -> String {
    value.filter(|value| !value.is_empty()).unwrap_or_else(|| panic!("{MISSING}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "start them with `tests/services up`")]
    fn a_missing_service_says_how_to_start_it() {
        given(None);
    }

    #[test]
    #[should_panic(expected = "no services")]
    fn an_empty_variable_is_a_missing_service() {
        given(Some(String::new()));
    }
}
