//! Reading certificates by name at all shards of this authority.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastpay_core::{AccountId, Certificate, Chain, History, Pruned, Transfer};
use fastpay_rpc::{CERTIFICATES_BYTES_MAX, Certificates, TransferName, certificate_bytes_max};

use super::layout_of;
use super::reads::{ReadError, Reads, ask};
use crate::authority::shard::{Command, HistoryError, HistoryReader, ShardHandle};

/// The number of consecutive certificates that are read at a time: enough that following links saves most reads, and
/// few enough to hold in memory.
const RUN_MAX: usize = 16;

/// A certificate that is asked for by name: none if it is not confirmed here, or what is pruned of its account's.
pub(super) type Named = Result<Option<Arc<Certificate>>, Pruned>;

/// Those of the named certificates that the `shards` have confirmed, as many as fit into one answer. It ends before one
/// that is pruned; if that is the first, it is an error. `reads` bounds how many histories are read at a time.
pub(crate) async fn read_certificates(
    shards: &[(ShardHandle, HistoryReader)],
    reads: &Reads,
    names: Vec<TransferName>,
) -> Result<Certificates<Arc<Certificate>>, ReadError> {
    let answer = Certificates { found: Vec::new(), looked_up: 0 };
    let begun = (answer, 0_usize, None);
    let folded = fold_certificates(shards, reads, names, begun, |(answer, bytes, pruned), named| {
        let certificate = match named {
            Ok(certificate) => certificate,
            Err(found) => {
                *pruned = Some(found);
                return false;
            }
        };
        if let Some(certificate) = certificate {
            *bytes = bytes.saturating_add(bytes_max(&certificate));
            if *bytes > CERTIFICATES_BYTES_MAX && !answer.found.is_empty() {
                return false;
            }
            answer.found.push(certificate);
        }
        answer.looked_up = answer.looked_up.saturating_add(1);
        true
    })
    .await?;
    match folded {
        (Certificates { looked_up: 0, .. }, _, Some(pruned)) => Err(pruned.into()),
        (answer, ..) => Ok(answer),
    }
}

fn bytes_max(certificate: &Certificate) -> usize {
    let outputs = match &certificate.order.transfer {
        Transfer::Payout(payout) => payout.outputs.len(),
        Transfer::Payment(_) | Transfer::Redemption(_) => 0,
    };
    certificate_bytes_max(outputs, certificate.votes.len())
}

/// Calls `step` with the certificate of each name in turn, until it returns false.
pub(super) async fn fold_certificates<T: Send + 'static>(
    shards: &[(ShardHandle, HistoryReader)],
    reads: &Reads,
    names: Vec<TransferName>,
    mut value: T,
    mut step: impl FnMut(&mut T, Named) -> bool + Send + 'static,
) -> Result<T, ReadError> {
    let layout = layout_of(shards);
    // Ask for all accounts before waiting for the first: one batch of the shard answers them together.
    let mut asked = BTreeMap::new();
    for (account, _) in &names {
        if let (false, Some((handle, history))) =
            (asked.contains_key(account), shards.get(layout.shard_of(account).0 as usize))
        {
            let answer = ask(handle, |reply| Command::ReadAccount(*account, reply))?;
            asked.insert(*account, (answer, history.clone()));
        }
    }
    let mut sent: BTreeMap<AccountId, (History, HistoryReader)> = BTreeMap::new();
    for (account, (answer, reader)) in asked {
        sent.insert(account, (answer.await?.sent, reader));
    }
    let read = reads.blocking(move || -> Result<T, HistoryError> {
        let mut rest = names.as_slice();
        while let Some((account, first)) = rest.first() {
            let numbers = rest.iter().zip(first.0..=u64::MAX).take(RUN_MAX);
            let run = numbers.take_while(|((sender, sequence), number)| sender == account && sequence.0 == *number);
            let run = run.count().max(1);
            let page = match sent.get(account) {
                Some((history, reader)) => {
                    match reader.page(history, first.0, u32::try_from(run).unwrap_or(1), Chain::Sent) {
                        // One by one: some of them may be kept.
                        Err(HistoryError::Pruned(_)) => {
                            let numbers = rest.iter().take(run).map(|(_, sequence)| *sequence);
                            numbers.map(|number| named(reader.certificate(*account, history, number))).collect()
                        }
                        page => page?.into_iter().map(|(_, record)| Ok(Ok(record.certificate().cloned()))).collect(),
                    }
                }
                None => Vec::<Result<Named, HistoryError>>::new(),
            };
            for certificate in page.into_iter().chain(std::iter::repeat_with(|| Ok(Ok(None)))).take(run) {
                if !step(&mut value, certificate?) {
                    return Ok(value);
                }
            }
            rest = rest.get(run..).unwrap_or_default();
        }
        Ok(value)
    });
    read.await
}

fn named(read: Result<Option<Arc<Certificate>>, HistoryError>) -> Result<Named, HistoryError> {
    match read {
        Err(HistoryError::Pruned(pruned)) => Ok(Err(pruned)),
        read => read.map(Ok),
    }
}
