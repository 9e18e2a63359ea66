use handstamp::flow::{Answer, Setback};

use super::database::TransactionId;
use super::kafka::{Kind, Record};
use super::oracle::{Broken, Verdict};
use super::state::Effect;
use super::world::World;

/// What handlers do between claim and guard: their work, and every way of doing it wrong.
impl World {
    /// The handler's last step, in an open transaction: it writes, and then goes its way.
    pub(super) fn handle(
        &mut self,
        open: TransactionId,
        effect: Effect,
        record: Record,
    ) -> Result<Answer, Broken> {
        let fails = match record.kind {
            Kind::Poison => Some(Setback::Handler),
            Kind::Flaky if self.random.chance(500) => Some(Setback::Handler),
            Kind::Rejected => Some(Setback::Rejected),
            _ => None,
        };
        let written = self.database.apply(open, Effect { failed: fails.is_some(), ..effect });
        let fails = if written { fails } else { Some(Setback::Handler) };
        if let Some(setback) = fails {
            // It is asked whether the transaction was ended before, by whichever record.
            let ended = self.database.is_ended(open);
            return Ok(Answer::Failed(if ended { Setback::TransactionEnded } else { setback }));
        }
        let mended = self.mended.contains(&record.id);
        Ok(match record.kind {
            Kind::Hiding => {
                self.report.errors_hidden += 1;
                self.database.abort(open);
                Answer::Done
            }
            Kind::Committing if !mended => {
                self.report.transactions_ended += 1;
                self.commit_inside(open)?;
                self.after_the_end()
            }
            Kind::RollingBack if !mended => {
                self.report.transactions_ended += 1;
                self.database.roll_back_inside(open);
                self.after_the_end()
            }
            _ => Answer::Done,
        })
    }

    /// A handler that has ended its transaction may fail as well, and is asked about it at once.
    fn after_the_end(&mut self) -> Answer {
        if self.random.chance(300) { Answer::Failed(Setback::TransactionEnded) } else { Answer::Done }
    }

    fn commit_inside(&mut self, open: TransactionId) -> Verdict {
        let committed = self.database.commit_inside(open);
        self.committed(&committed)
    }
}
