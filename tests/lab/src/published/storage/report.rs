use std::fmt::{self, Display};

use serde_json::{Map, Value, json};

use super::super::chart::{Chart, Group, Panel, number};
use super::super::output::Table;
use super::claims::ClaimCost;
use super::ids::Ids;

/// By how much a claim may grow dearer while the table grows tenfold.
const AT_MOST: f64 = 1.3;

/// Bytes per id, in the order of [`Ids::ALL`].
pub struct Report {
    rows: u64,
    pub plain: Vec<f64>,
    pub handstamp: Vec<f64>,
    pub claims: Vec<ClaimCost>,
}

impl Report {
    pub fn of(rows: u64) -> Self {
        Self { rows, plain: Vec::new(), handstamp: Vec::new(), claims: Vec::new() }
    }

    pub fn json(&self) -> Value {
        let mut bytes = Map::new();
        for (ids, plain, _) in self.lines() {
            bytes.insert(ids.name().to_owned(), rounded(plain).into());
        }
        for (ids, _, handstamp) in self.lines() {
            bytes.insert(format!("handstamp_{}", ids.name()), rounded(handstamp).into());
        }
        let claims = self.claims.iter().map(|claim| {
            json!({
                "ids": claim.ids.name(),
                "rows": claim.rows,
                "micros_per_key": claim.micros.map(rounded),
                "ratio": rounded(claim.ratio()),
                "at_most": AT_MOST,
            })
        });
        let published = Ids::ALL.map(|ids| (ids.name().to_owned(), ids.published().into()));
        let published: Map<_, Value> = published.into_iter().collect();
        json!({
            "experiment": "storage",
            "rows": self.rows,
            "bytes_per_id": bytes,
            "published_bytes_per_id": published,
            "claims": claims.collect::<Vec<_>>(),
        })
    }

    fn bytes(&self) -> Table {
        let mut table =
            Table::with_head(["ids", "plain table", "published", "handstamp", "of the plain table"]);
        for (ids, plain, handstamp) in self.lines() {
            table.add([
                ids.name().to_owned(),
                format!("{plain:.1}"),
                format!("{:.1}", ids.published()),
                format!("{handstamp:.1}"),
                format!("{:.0} %", handstamp / plain * 100.0),
            ]);
        }
        table
    }

    fn claims(&self) -> Table {
        let mut table =
            Table::with_head(["claims", "rows", "µs a key", "rows", "µs a key", "ratio", "at most", "met"]);
        for claim in &self.claims {
            let [rows, more_rows] = claim.rows;
            let [micros, more_micros] = claim.micros;
            table.add([
                claim.ids.name().to_owned(),
                rows.to_string(),
                format!("{micros:.2}"),
                more_rows.to_string(),
                format!("{more_micros:.2}"),
                format!("{:.2}", claim.ratio()),
                AT_MOST.to_string(),
                if claim.ratio() <= AT_MOST { "yes" } else { "no" }.to_owned(),
            ]);
        }
        table
    }

    pub fn chart(&self) -> Chart {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let rows = self.rows as f64;
        let mut groups = Vec::new();
        for (ids, plain, handstamp) in self.lines() {
            let bar = |table: &str, published, here| Group {
                label: vec![ids.name().replace('_', " "), table.to_owned()],
                published,
                here: vec![here],
            };
            groups.push(bar("plain table", Some(ids.published()), plain));
            groups.push(bar("handstamp", None, handstamp));
        }
        Chart {
            title: "What a remembered id costs in PostgreSQL".to_owned(),
            subtitle: format!("table and index after VACUUM, {} rows", number(rows)),
            here: "measured here".to_owned(),
            panels: vec![Panel { title: "bytes per id".to_owned(), groups }],
        }
    }

    fn lines(&self) -> impl Iterator<Item = (Ids, f64, f64)> {
        let measured = self.plain.iter().zip(&self.handstamp);
        Ids::ALL.into_iter().zip(measured).map(|(ids, (plain, handstamp))| (ids, *plain, *handstamp))
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.bytes(), self.claims())
    }
}

fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}
