use serde::{Deserialize, Serialize};

/// What a worker process says on its standard output, one JSON object a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// A partition is being read.
    Started { partition: i32, offset: i64 },
    /// A partition was taken back, or lost.
    Ended { partition: i32 },
    /// A record is dealt with.
    Done { partition: i32, offset: i64, ending: Ending },
    /// A record is not dealt with.
    Failed { partition: i32, offset: i64, attempt: u32, kind: String, error: String },
    /// A partition is not read.
    Refused { partition: i32, reason: String },
    /// The Kafka client is made anew.
    Rebuilt { error: String },
    /// A trigger goes off.
    Reached { point: String },
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The handler ran.
    Applied,
    /// It was dealt with before, so the handler was not called.
    Known,
    /// A dead letter was written.
    Parked,
    /// It has no payload.
    Skipped,
}

impl Told {
    /// Says it, in one write: what a process has said before it is killed is not lost.
    pub fn say(&self) {
        println!("{}", serde_json::to_string(self).expect("numbers and strings"));
    }
}
