use futures_util::future::join_all;

/// Runs variants beside each other, each of which does little but wait: what came of those that ran, and what
/// went wrong with the others.
pub async fn abreast<T>(
    variants: impl IntoIterator<Item = impl Future<Output = anyhow::Result<T>>>,
) -> (Vec<T>, Vec<String>) {
    let (mut summaries, mut failings) = (Vec::new(), Vec::new());
    for outcome in join_all(variants).await {
        match outcome {
            Ok(summary) => summaries.push(summary),
            Err(error) => failings.push(format!("{error:#}")),
        }
    }
    (summaries, failings)
}
