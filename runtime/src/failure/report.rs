use std::error::Error;

/// How many bytes of an error are kept with a dead letter.
const LIMIT: usize = 8 * 1024;

/// An error with its causes, safe to store: without NUL, which PostgreSQL's text cannot hold, and bounded.
pub(crate) fn report(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Many errors print their cause themselves.
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    storable(&text)
}

/// The text as it can be stored.
pub(crate) fn storable(text: &str) -> String {
    let mut text = text.replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(LIMIT));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::anyhow!("disk full").context("writing").context("crediting");
        assert_eq!(report(&*error), "crediting: writing: disk full");
        let error = sqlx::Error::Io(std::io::Error::other("reset"));
        assert_eq!(report(&error), "error communicating with database: reset");
    }

    #[test]
    fn any_error_can_be_stored() {
        let text = storable(&format!("a\0b{}", "é".repeat(LIMIT)));
        assert!(text.starts_with("a\u{fffd}b") && text.len() <= LIMIT);
    }
}
