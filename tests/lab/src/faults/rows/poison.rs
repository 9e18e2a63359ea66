use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use futures_util::future::join_all;

use crate::faults::defect::Defect;
use crate::faults::ledger::{Event, Fate};
use crate::faults::load::Mix;
use crate::faults::row::{Ask, Expects, Fault, Row};
use crate::faults::stage::{Post, Setup, Stage};
use crate::faults::trial::Trial;
use crate::faults::worker::Trouble;

pub const ROW: Row = Row {
    id: "F20",
    what: "records that can never be applied",
    asks: &[Ask::new(Fault::UnreadableRecords, 180, 900), Ask::new(Fault::HopelessRecords, 30, 150)],
    expects: Expects { duplicates: false, takeovers: false, no_redelivery: false },
    run: |trial| Box::pin(run(trial)),
};

/// Between records that are sound, also of the same partition. Tombstones come with the load.
async fn run(trial: Arc<Trial>) -> Result<()> {
    let mix = Mix { tombstones: 50, ..Mix::default() };
    let stage = trial.stage(Setup { mix, ..Setup::default() }).await?;
    let members = ["0", "1", "2"].map(|name| stage.enlist(&Post::fixed(name))).into();
    let mut random = trial.random(0);
    // What the letter at each place has to say.
    let mut reasons = BTreeMap::new();
    loop {
        let letters = letters(&stage).await?;
        for fault in [Fault::UnreadableRecords, Fault::HopelessRecords] {
            let right = reasons
                .iter()
                .filter(|(place, (of, reason))| *of == fault && letters.get(place) == Some(reason));
            trial.observed_in_all(fault, u64::try_from(right.count())?);
        }
        let unreadable = Defect::ALL.map(|defect| (Fault::UnreadableRecords, Fate::Unreadable(defect)));
        let hopeless = (Fault::HopelessRecords, Fate::Parked(Trouble::Fails(u32::MAX)));
        let wanted = unreadable.into_iter().chain([hopeless]).filter(|(fault, _)| trial.wants(*fault));
        let wanted: Vec<_> = wanted.collect();
        if wanted.is_empty() {
            return trial.close(stage, members).await;
        }
        let records: Vec<_> = wanted
            .into_iter()
            .map(|(fault, fate)| {
                trial.injected(fault);
                let partition = i32::try_from(random.below(16)).expect("partitions are few");
                (fault, Event { account: 1, amount: 1, fate }, partition)
            })
            .collect();
        let written = join_all(records.iter().map(|(_, event, partition)| stage.write(*event, *partition)));
        for ((fault, event, partition), (_, offset)) in records.iter().zip(written.await) {
            let reason = match event.fate {
                Fate::Unreadable(defect) => defect.reason(),
                _ => "failed",
            };
            reasons.insert((*partition, offset), (*fault, reason.to_owned()));
        }
    }
}

async fn letters(stage: &Stage) -> Result<BTreeMap<(i32, i64), String>> {
    let letters: Vec<(i32, i64, String)> =
        sqlx::query_as(r#"SELECT partition, "offset", reason FROM handstamp.dead_letters"#)
            .fetch_all(&mut stage.connect().await?)
            .await?;
    Ok(letters.into_iter().map(|(partition, offset, reason)| ((partition, offset), reason)).collect())
}
