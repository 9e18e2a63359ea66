//! What fuzzing found worth keeping, and a few inputs more in every run of the tests.

use std::fs;
use std::path::Path;

use handstamp_fuzz::{TARGETS, Target};
use proptest::prelude::*;

#[test]
fn inputs_that_fuzzing_kept_break_no_promise() {
    for Target { name, run } in TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let inputs: Vec<_> = fs::read_dir(folder).expect("the target has a corpus").collect();
        assert!(!inputs.is_empty(), "the corpus of {name} is empty");
        for input in inputs {
            let path = input.expect("the corpus can be read").path();
            println!("{}", path.display());
            run(&fs::read(path).expect("an input can be read"));
        }
    }
}

fn json() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: &[&str] =
        &["{", "}", "[", "]", ",", ":", "\"id\"", "\"a\"", "\"trace_id\"", "\"\\ud83d\"", "1", "1e400", " "];
    proptest::collection::vec(proptest::sample::select(WORDS), 0..12).prop_map(|words| words.concat().into())
}

proptest! {
    #[test]
    fn any_bytes_break_no_promise(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        for Target { run, .. } in TARGETS {
            run(&bytes);
        }
    }

    #[test]
    fn what_looks_like_json_breaks_no_promise(bytes in json()) {
        for Target { run, .. } in TARGETS {
            run(&bytes);
        }
    }
}
