use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::super::feed::Feed;
use super::variant::Variant;

/// Topics of several sizes, each the beginning of the largest.
pub struct Contents {
    messages: u64,
    topics: BTreeMap<u64, Feed>,
}

impl Contents {
    pub async fn produce<'a>(messages: u64, variants: impl Iterator<Item = &'a Variant>) -> Result<Self> {
        let sizes: BTreeSet<_> = variants.map(|variant| variant.share(messages)).collect();
        let mut topics = BTreeMap::new();
        for size in sizes {
            let mut feed = Feed::open().await;
            feed.produce(size).await?;
            feed.forget_ledger();
            topics.insert(size, feed);
        }
        Ok(Self { messages, topics })
    }

    /// The topic that a variant reads.
    pub fn of(&self, variant: &Variant) -> Result<&Feed> {
        self.topics.get(&variant.share(self.messages)).context("a topic for each variant")
    }

    pub async fn close(self) {
        for feed in self.topics.into_values() {
            feed.close().await;
        }
    }
}
