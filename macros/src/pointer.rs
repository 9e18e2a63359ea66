//! JSON pointers (RFC 6901): `/a/b`.

/// Whether `text` points to a part of a payload; else what to write instead.
pub fn check(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(
            "the empty pointer is the whole payload, which is no key: point to a field, as in `\"/id\"`"
                .into(),
        );
    }
    if !text.starts_with('/') {
        return Err(format!("a JSON pointer starts with `/`: write {:?}", pointer_for(text)));
    }
    let stray = text.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1']));
    if stray {
        return Err("in a JSON pointer `~0` stands for `~` and `~1` for `/`; a `~` before anything else has no meaning".into());
    }
    Ok(())
}

/// Guesses the pointer meant by a field's name, a dotted path, a `JSONPath` or a URI fragment.
fn pointer_for(text: &str) -> String {
    let path = text.trim_start_matches(['$', '#', '.', '/']);
    format!("/{}", path.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn escapes_and_empty_names_are_pointers() {
        for pointer in ["/id", "/a/b", "/items/0", "/a~1b", "/a~0b", "/", "/ä"] {
            assert_eq!(check(pointer), Ok(()), "{pointer}");
        }
    }

    #[test]
    fn what_was_meant_is_suggested() {
        for (written, meant) in [("id", "/id"), ("a.b", "/a/b"), ("$.a.b", "/a/b"), ("#/a/b", "/a/b")] {
            let message = check(written).expect_err(written);
            assert!(message.ends_with(&format!("write {meant:?}")), "{message}");
        }
    }

    #[test]
    fn the_whole_payload_and_stray_tildes_are_refused() {
        for pointer in ["", "/a~", "/a~2b", "/~~0"] {
            assert!(check(pointer).is_err(), "{pointer:?} passed");
        }
    }
}
