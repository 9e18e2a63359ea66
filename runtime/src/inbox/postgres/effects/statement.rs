/// A statement that can stand in a block of PL/pgSQL, taken apart where its arguments are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement<'a> {
    /// What stands before it there, in place of its first word.
    pub(super) opening: &'static str,
    pub(super) pieces: Vec<Piece<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// `$1` is 1.
    Argument(usize),
}

impl<'a> Statement<'a> {
    /// `None` for one that could mean something else in a block, or has other arguments than these.
    pub(super) fn parse(sql: &'a str, arguments: usize) -> Option<Self> {
        let mut words = 0;
        let (mut opening, mut pieces, mut start) = (None, Vec::new(), 0);
        let mut rest = Lexer { sql, at: 0 };
        let mut ended = false;
        while !rest.is_done() {
            let (at, token) = rest.next()?;
            if ended && token != Token::Blank {
                return None;
            }
            match token {
                Token::Blank | Token::Other => {}
                Token::End => {
                    pieces.push(Piece::Text(&sql[start..at]));
                    ended = true;
                }
                Token::Argument(number) => {
                    if !(1..=arguments).contains(&number) {
                        return None;
                    }
                    pieces.extend([Piece::Text(&sql[start..at]), Piece::Argument(number)]);
                    start = rest.at;
                }
                Token::Word => {
                    words += 1;
                    let word = sql[at..rest.at].to_ascii_lowercase();
                    match (words, &*word) {
                        (1, "insert" | "update" | "delete" | "merge") => {
                            (opening, start) = (Some(""), at);
                        }
                        (1, "select") => (opening, start) = (Some("PERFORM"), rest.at),
                        (2, "into") if opening == Some("") => {}
                        (1, _) | (_, "into" | "returning") => return None,
                        _ => {}
                    }
                }
            }
        }
        if !ended {
            pieces.push(Piece::Text(&sql[start..]));
        }
        Some(Self { opening: opening?, pieces })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// White space or a comment.
    Blank,
    /// A keyword or a name without quotes.
    Word,
    Argument(usize),
    /// A semicolon.
    End,
    /// A string, a quoted name, an operator, a digit.
    Other,
}

/// By <https://www.postgresql.org/docs/current/sql-syntax-lexical.html>.
struct Lexer<'a> {
    sql: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn is_done(&self) -> bool {
        self.at == self.sql.len()
    }

    /// The next token and where it begins; `None` where it is not certain what the server would see.
    fn next(&mut self) -> Option<(usize, Token)> {
        let start = self.at;
        let rest = &self.sql[start..];
        let first = rest.chars().next()?;
        let (token, length) = match first {
            // Not what Unicode calls white space: to the server that is a letter.
            ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' => (Token::Blank, 1),
            '-' if rest.starts_with("--") => (Token::Blank, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (Token::Blank, comment(rest)?),
            ';' => (Token::End, 1),
            '\'' => (Token::Other, string(rest, '\'')?),
            '"' => (Token::Other, quoted(rest, '"')?),
            '$' => dollar(rest)?,
            _ if begins_word(first) => {
                let length = rest.find(|c| !continues_word(c)).unwrap_or(rest.len());
                // `E'…'` and its like have rules of their own.
                if rest[length..].starts_with('\'') && length <= 2 {
                    return None;
                }
                (Token::Word, length)
            }
            // A number takes in what follows it, so that `1e5` has no word in it.
            _ if first.is_ascii_digit() => {
                (Token::Other, rest.find(|c| !continues_word(c)).unwrap_or(rest.len()))
            }
            _ => (Token::Other, first.len_utf8()),
        };
        self.at += length;
        Some((start, token))
    }
}

fn begins_word(c: char) -> bool {
    c.is_alphabetic() || c == '_' || !c.is_ascii()
}

fn continues_word(c: char) -> bool {
    begins_word(c) || c.is_ascii_digit() || c == '$'
}

/// The length of what stands in quotes; a quote in it is written twice.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text[at..].find(quote)? + 1;
        if !text[at..].starts_with(quote) {
            return Some(at);
        }
        at += 1;
    }
}

/// A backslash means one thing or another by a setting of the server's.
fn string(text: &str, quote: char) -> Option<usize> {
    let length = quoted(text, quote)?;
    (!text[..length].contains('\\')).then_some(length)
}

/// Comments stand in one another.
fn comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let rest = &text[at..];
        at += if rest.starts_with("/*") {
            depth += 1;
            2
        } else if rest.starts_with("*/") {
            depth -= 1;
            2
        } else {
            rest.chars().next()?.len_utf8()
        };
        if depth == 0 {
            return Some(at);
        }
    }
}

/// An argument, or a string between two `$tag$`.
fn dollar(text: &str) -> Option<(Token, usize)> {
    let digits = text[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - 1);
    if digits > 0 {
        if text[1 + digits..].starts_with(continues_word) {
            return None;
        }
        return Some((Token::Argument(text[1..=digits].parse().ok()?), 1 + digits));
    }
    let tag = 1 + text[1..].find('$')? + 1;
    if !text[1..tag - 1].chars().all(|c| continues_word(c) && c != '$') {
        return None;
    }
    let (opening, inside) = text.split_at(tag);
    Some((Token::Other, tag + inside.find(opening)? + tag))
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    /// What it becomes with `<1>` for `$1`.
    fn taken_apart(sql: &str, arguments: usize) -> Option<String> {
        let statement = Statement::parse(sql, arguments)?;
        let pieces = statement.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => (*text).to_owned(),
            Piece::Argument(number) => format!("<{number}>"),
        });
        Some(iter::once(statement.opening.to_owned()).chain(pieces).collect())
    }

    #[test]
    fn arguments_are_found() {
        for (sql, expected) in [
            ("UPDATE a SET b=$1 WHERE c=$2::int8", "UPDATE a SET b=<1> WHERE c=<2>::int8"),
            ("insert into a values ($2,$1)", "insert into a values (<2>,<1>)"),
            (" /* a */ DELETE FROM a WHERE b = $1 ; -- done", "DELETE FROM a WHERE b = <1> "),
            ("SELECT credit($1, $2)", "PERFORM credit(<1>, <2>)"),
            ("MERGE INTO a USING b ON $1", "MERGE INTO a USING b ON <1>"),
        ] {
            assert_eq!(taken_apart(sql, 2).as_deref(), Some(expected), "{sql}");
        }
    }

    #[test]
    fn what_only_looks_like_an_argument_stays() {
        for sql in [
            "INSERT INTO a VALUES ('$1', 'it''s $1')",
            "INSERT INTO \"$1\" VALUES (1)",
            "INSERT INTO \"a\"\"$1\" VALUES (1)",
            "UPDATE a SET b = 1 -- $1",
            "UPDATE a SET b = /* /* */ $1 */ 2",
            "INSERT INTO a VALUES ($$ $1 ' $$, $a$ $1 $$ ; $a$)",
            "UPDATE a$1 SET ü$1 = 1e5",
            "UPDATE a\u{a0}$1 SET b = 1",
        ] {
            assert_eq!(taken_apart(sql, 0).as_deref(), Some(sql));
        }
    }

    #[test]
    fn what_could_mean_something_else_in_a_block_is_left_out() {
        for sql in [
            "",
            "COMMIT",
            "WITH a AS (SELECT 1) UPDATE b SET c = 1",
            "INSERT INTO a VALUES (1) RETURNING b",
            "SELECT 1 INTO a",
            "UPDATE a SET b = 1; DELETE FROM a",
            "UPDATE a SET b = 1;;",
            "UPDATE a SET b = '\\'",
            "UPDATE a SET b = E'\\''",
            "UPDATE a SET b = U&'\\0061'",
            "UPDATE a SET b = 'open",
            "UPDATE a SET b = \"open",
            "UPDATE a SET b = 1 /* open",
            "UPDATE a SET b = $open$ ",
            "UPDATE a SET b = $3",
            "UPDATE a SET b = $0",
            "UPDATE a SET b = $1c",
            "UPDATE a SET b = $99999999999999999999",
        ] {
            assert_eq!(taken_apart(sql, 2), None, "{sql}");
        }
    }
}
