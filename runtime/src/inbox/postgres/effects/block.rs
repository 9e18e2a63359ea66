use std::any::TypeId;
use std::collections::HashMap;
use std::fmt::Write as _;

use sqlx::postgres::PgArguments;
use sqlx::{Arguments as _, AssertSqlSafe, PgConnection};

use super::statement::{Piece, Statement};
use super::{Effect, Recorded, Refused, unbound};
use crate::failure::Failure;

/// More different statements than this go one by one: each has columns in every row.
const MOST_STATEMENTS: usize = 16;

/// Statements of many messages that the server runs one after the other.
///
/// The arguments come as rows of a cursor, as many arrays as there are different arguments; a `DO` block, which
/// can take no arguments itself, fetches row by row and runs the statement that the row is for. The text of the
/// statements stands in the block as the handler wrote it, so that each is planned once.
pub(super) struct Block<'a> {
    recorded: &'a [Effect],
    distinct: Vec<Distinct<'a>>,
    /// Which of them each recorded one is.
    which: Vec<usize>,
}

/// What is recorded with the same text and types.
struct Distinct<'a> {
    first: &'a Effect,
    statement: Statement<'a>,
}

impl<'a> Block<'a> {
    /// `None` if they cannot go together.
    pub(super) fn of(recorded: &'a [Effect]) -> Option<Self> {
        let mut known: HashMap<(&str, TypeId, Option<u64>), usize> = HashMap::new();
        let mut distinct: Vec<Distinct<'a>> = Vec::new();
        let mut which = Vec::with_capacity(recorded.len());
        for effect in recorded {
            let same = (effect.sql(), effect.arguments.as_any().type_id(), effect.rows);
            let index = match known.get(&same) {
                Some(&index) => index,
                None if distinct.len() == MOST_STATEMENTS => return None,
                None => {
                    let statement = Statement::parse(effect.sql(), effect.arguments.count())?;
                    known.insert(same, distinct.len());
                    distinct.push(Distinct { first: effect, statement });
                    distinct.len() - 1
                }
            };
            which.push(index);
        }
        Some(Self { recorded, distinct, which })
    }

    pub(super) async fn run(&self, connection: &mut PgConnection) -> Result<(), Failure> {
        let cursor = sqlx::query_with(AssertSqlSafe(self.cursor()), self.arguments()?);
        cursor.execute(&mut *connection).await.map_err(Failure::from_handler)?;
        let block = sqlx::raw_sql(AssertSqlSafe(self.block()));
        let statements = self.recorded.len();
        let refused = |source| Failure::from_handler(Refused::OneOf { statements, source });
        block.execute(connection).await.map_err(refused)?;
        Ok(())
    }

    fn arguments(&self) -> Result<PgArguments, Failure> {
        let mut arguments = PgArguments::default();
        let which: Vec<_> = self.which.iter().map(|&index| i32::try_from(index).unwrap_or(-1)).collect();
        arguments.add(which).map_err(unbound)?;
        for (index, distinct) in self.distinct.iter().enumerate() {
            let rows: Vec<Option<&dyn Recorded>> = self
                .recorded
                .iter()
                .zip(&self.which)
                .map(|(effect, &which)| (which == index).then_some(&*effect.arguments))
                .collect();
            distinct.first.arguments.bind_columns(&rows, &mut arguments).map_err(unbound)?;
        }
        Ok(arguments)
    }

    /// Opens the cursor that the block reads.
    fn cursor(&self) -> String {
        let columns = self.distinct.iter().enumerate().flat_map(|(statement, distinct)| {
            (1..=distinct.first.arguments.count()).map(move |argument| column(statement, argument))
        });
        let columns: Vec<_> = std::iter::once("statement".to_owned()).chain(columns).collect();
        let arrays: Vec<_> = (1..=columns.len()).map(|array| format!("${array}")).collect();
        format!(
            "DECLARE handstamp_effects NO SCROLL CURSOR FOR SELECT * FROM unnest({}) AS effect ({})",
            arrays.join(", "),
            columns.join(", ")
        )
    }

    fn block(&self) -> String {
        let mut text = String::from(
            "\n#variable_conflict use_column\n\
             DECLARE handstamp_effects refcursor := 'handstamp_effects'; handstamp_effect record; \
             handstamp_rows int8;\n\
             BEGIN LOOP\n\
             FETCH handstamp_effects INTO handstamp_effect; EXIT WHEN NOT FOUND;\n",
        );
        for (index, Distinct { first, statement }) in self.distinct.iter().enumerate() {
            let branch = if index == 0 { "IF" } else { "ELSIF" };
            let _ = write!(text, "{branch} handstamp_effect.statement = {index} THEN\n{}", statement.opening);
            for piece in &statement.pieces {
                let _ = match piece {
                    Piece::Text(sql) => text.write_str(sql),
                    Piece::Argument(argument) => {
                        write!(text, "(handstamp_effect.{})", column(index, *argument))
                    }
                };
            }
            // On a line of its own, in case the statement ends in a comment.
            text.push_str("\n;\n");
            if let Some(rows) = first.rows {
                let _ = writeln!(
                    text,
                    "GET DIAGNOSTICS handstamp_rows = ROW_COUNT; IF handstamp_rows <> {rows} THEN \
                     RAISE EXCEPTION 'affected % rows instead of {rows}', handstamp_rows; END IF;"
                );
            }
        }
        text.push_str("END IF; END LOOP; CLOSE handstamp_effects; END ");
        let mut quote = String::from("$handstamp$");
        while text.contains(&quote) {
            quote.insert(1, '_');
        }
        format!("DO {quote}{text}{quote}")
    }
}

fn column(statement: usize, argument: usize) -> String {
    format!("s{statement}_{argument}")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::Effects;
    use super::*;

    #[test]
    fn statements_stand_in_the_block_as_they_were_written() {
        let mut effects = Effects::new();
        effects.execute("UPDATE a SET b = b + $1 WHERE id = $2 -- no $3", (1_i64, 2_i64)).expect_rows(1);
        effects.execute("SELECT credit($1)", ("$handstamp$".to_owned(),));
        effects.execute("UPDATE a SET b = b + $1 WHERE id = $2 -- no $3", (3_i64, 4_i64)).expect_rows(1);
        let block = Block::of(effects.recorded()).expect("they go together");
        assert_eq!(block.which, [0, 1, 0]);
        expect![[r"
            DECLARE handstamp_effects NO SCROLL CURSOR FOR SELECT * FROM unnest($1, $2, $3, $4) AS effect (statement, s0_1, s0_2, s1_1)
            DO $handstamp$
            #variable_conflict use_column
            DECLARE handstamp_effects refcursor := 'handstamp_effects'; handstamp_effect record; handstamp_rows int8;
            BEGIN LOOP
            FETCH handstamp_effects INTO handstamp_effect; EXIT WHEN NOT FOUND;
            IF handstamp_effect.statement = 0 THEN
            UPDATE a SET b = b + (handstamp_effect.s0_1) WHERE id = (handstamp_effect.s0_2) -- no $3
            ;
            GET DIAGNOSTICS handstamp_rows = ROW_COUNT; IF handstamp_rows <> 1 THEN RAISE EXCEPTION 'affected % rows instead of 1', handstamp_rows; END IF;
            ELSIF handstamp_effect.statement = 1 THEN
            PERFORM credit((handstamp_effect.s1_1))
            ;
            END IF; END LOOP; CLOSE handstamp_effects; END $handstamp$
        "]].assert_eq(&format!("{}\n{}\n", block.cursor(), block.block()));
    }

    #[test]
    fn the_block_is_quoted_by_what_does_not_stand_in_it() {
        let mut effects = Effects::new();
        effects.execute("INSERT INTO a VALUES ($$ $handstamp$ $$)", ());
        let block = Block::of(effects.recorded()).expect("it can go with others");
        assert!(block.block().starts_with("DO $_handstamp$"));
    }

    #[test]
    fn one_text_with_other_types_is_another_statement() {
        let mut effects = Effects::new();
        effects.execute("DELETE FROM a WHERE b = $1", (1_i64,));
        effects.execute("DELETE FROM a WHERE b = $1", (1_i32,));
        assert_eq!(Block::of(effects.recorded()).expect("they go together").which, [0, 1]);
    }

    #[test]
    fn many_different_statements_do_not_go_together() {
        let mut effects = Effects::new();
        for number in 0..=MOST_STATEMENTS {
            effects.execute(AssertSqlSafe(format!("DELETE FROM t{number}")), ());
        }
        assert!(Block::of(effects.recorded()).is_none());
    }
}
