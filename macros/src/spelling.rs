//! Suggestions for misspelt words.

/// The known word that was probably meant: at most two letters away.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let (letters, nearest) = known.iter().map(|known| (distance(word, known), *known)).min()?;
    (letters <= 2 && letters < word.len()).then_some(nearest)
}

/// The known words, and the one that was probably meant.
pub fn suggest(word: &str, known: &[&str]) -> String {
    let listed = known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    match nearest(word, known) {
        Some(meant) => format!("did you mean `{meant}`? There are {listed}"),
        None => format!("there are {listed}"),
    }
}

/// How many letters must be added, removed or changed to make one word of the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distance_counts_the_letters_to_change() {
        let distances = [("", "key"), ("key", "key"), ("kye", "key"), ("atempts", "attempts")];
        assert_eq!(distances.map(|(a, b)| distance(a, b)), [3, 0, 2, 1]);
    }

    #[test]
    fn a_word_that_is_far_from_all_gets_no_suggestion() {
        assert_eq!(nearest("colour", &["consumer", "key"]), None);
    }
}
