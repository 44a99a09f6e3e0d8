//! The book in fewer entries: without the attempts that came to an end, and without what ended long ago.

use std::collections::BTreeMap;

use fastpay_rpc::PaymentName;

use super::{Book, Compaction, Entry, Invoice};
use crate::invoice::Arrival;

/// A book that is to be written anew.
#[derive(Debug)]
pub struct Compacted {
    /// What is kept. These entries, and no others, make the book from now on.
    pub kept: Vec<Entry>,
    /// What is not: invoices, and payments of none, that go to the archive.
    pub forgotten: Book,
    /// The number of this archive.
    pub generation: u64,
}

impl Book {
    /// The same book in as few entries as there can be, without what ended before `forget_before_ms`, in milliseconds
    /// since 1970. Of that it knows the payments still, so that none is ever counted again, and the references, so that none
    /// makes a second invoice.
    #[must_use]
    pub fn compacted(&self, forget_before_ms: u64) -> Compacted {
        let generation = self.generation.saturating_add(1);
        let mut forgotten = Book::default();
        let (mut archived, mut retired) = (self.archived.clone(), self.retired.clone());
        let mut kept = Vec::new();
        let mut archive = |arrival: &Arrival| {
            archived.insert(arrival.name());
        };
        // Before all invoices, so that none of them takes a payment that came before it was made.
        for arrival in &self.unmatched {
            if arrival.received_at_ms < forget_before_ms {
                archive(arrival);
                forgotten.apply(Entry::Arrived(arrival.clone()));
            } else {
                kept.push(Entry::Arrived(arrival.clone()));
            }
        }
        for invoice in self.invoices_after(None).into_iter().flatten() {
            if self.is_over(invoice, forget_before_ms) {
                invoice.arrivals.iter().for_each(&mut archive);
                self.entries(invoice).for_each(|entry| forgotten.apply(entry));
                retired.insert(invoice.terms.reference.clone(), invoice.terms.id.clone());
            } else {
                kept.extend(self.entries(invoice));
            }
        }
        let mut by_sender = BTreeMap::<_, (Vec<_>, Vec<_>)>::new();
        for PaymentName { sender, sequence, output } in archived {
            let (sequences, outputs) = by_sender.entry(sender).or_default();
            match output {
                None => sequences.push(sequence),
                Some(output) => outputs.push((sequence, output)),
            }
        }
        let of_sender = |(sender, (sequences, outputs))| Entry::Archived { sender, sequences, outputs };
        kept.extend(by_sender.into_iter().map(of_sender));
        kept.extend(retired.into_iter().map(|(reference, id)| Entry::Retired { reference, id }));
        let lines = kept.len().saturating_add(1);
        kept.insert(0, Entry::Compacted(Compaction { generation, lines, looked_at_ms: self.looked_at_ms }));
        Compacted { kept, forgotten, generation }
    }

    /// Whether nothing will come of it any more: it ended, its last payment came, and the shop was told, before.
    fn is_over(&self, invoice: &Invoice, before_ms: u64) -> bool {
        let terms = &invoice.terms;
        terms.expires_at_ms() < before_ms
            && invoice.arrivals.iter().all(|arrival| arrival.received_at_ms < before_ms)
            && !self.unpaid.contains(&(terms.expires_at, terms.id.clone()))
            && invoice.events.iter().filter_map(|id| self.delivery(id)).all(|told| told.due_at_ms().is_none())
    }

    fn entries<'a>(&'a self, invoice: &'a Invoice) -> impl Iterator<Item = Entry> + use<'a> {
        let deliveries = invoice.events.iter().filter_map(|id| self.deliveries.get(id));
        std::iter::once(Entry::Created(invoice.terms.clone()))
            .chain(invoice.arrivals.iter().cloned().map(Entry::Arrived))
            .chain(deliveries.cloned().map(Entry::Told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::{Attempt, Outcome, Request, RequestError, Requested};
    use crate::invoice::tests::{END, arrival, terms};
    use crate::invoice::{State, Terms};
    use fastpay_core::{Amount, Asset, Memo};

    fn fold(entries: impl IntoIterator<Item = Entry>) -> Book {
        let mut book = Book::default();
        entries.into_iter().for_each(|entry| book.apply(entry));
        book
    }

    fn named(number: u8) -> Terms {
        let (id, reference) = (format!("inv_{number}"), format!("order {number}"));
        Terms { id, reference, memo: Memo::repeat_byte(number), ..terms(10) }
    }

    fn announced(id: &str, invoice: &str, state: State, arrivals: usize) -> Entry {
        let (id, invoice, body) = (id.into(), invoice.into(), format!("{{\"of\":\"{invoice}\"}}"));
        Entry::Announced(crate::book::Event { id, invoice, state, arrivals, looked_at_ms: 2_000, body })
    }

    fn attempted(event: &str, outcome: Outcome) -> Entry {
        Entry::Attempted(Attempt { event: event.into(), at_ms: 3_000, outcome })
    }

    /// Paid and told; paid and not told; open; and a payment that came before an invoice of its memo was made.
    fn entries() -> Vec<Entry> {
        let paid = |number: u8, sequence| {
            Entry::Arrived(crate::invoice::Arrival { memo: Memo::repeat_byte(number), ..arrival(sequence, 10, 1) })
        };
        let failed = Outcome::Failed { reason: "it answered 503".into(), next_at_ms: 9 };
        vec![
            paid(4, 0),
            Entry::Created(named(1)),
            Entry::Created(named(2)),
            Entry::Created(named(3)),
            Entry::Created(named(4)),
            paid(1, 1),
            announced("evt_1", "inv_1", State::Paid, 1),
            attempted("evt_1", failed.clone()),
            attempted("evt_1", Outcome::Delivered),
            paid(2, 2),
            announced("evt_2", "inv_2", State::Paid, 1),
            attempted("evt_2", failed),
        ]
    }

    #[test]
    fn in_fewer_entries_the_book_is_the_same() {
        let book = fold(entries());
        let compacted = book.compacted(0);
        assert!(compacted.kept.len() < entries().len() + 1);
        let again = fold(compacted.kept);
        assert_eq!(Book { generation: 0, ..again.clone() }, book);
        assert_eq!(again.generation, 1);
        assert_eq!(again.unmatched(), book.unmatched(), "an invoice takes no payment that came before it");
        let waiting: Vec<_> = again.undelivered().collect();
        assert_eq!((waiting.len(), waiting[0].attempts, waiting[0].event.body.as_str()), (1, 1, "{\"of\":\"inv_2\"}"));
        // Of one that only part was announced of, the rest still is.
        let mut touched = entries();
        touched.push(Entry::Arrived(crate::invoice::Arrival { memo: Memo::repeat_byte(1), ..arrival(7, 1, 2) }));
        let again = fold(fold(touched).compacted(0).kept);
        assert_eq!(again.changed(2_000).iter().map(|(_, state)| *state).collect::<Vec<_>>(), [State::Overpaid]);
    }

    #[test]
    fn what_ended_long_ago_is_archived_and_never_counted_again() {
        let later = END * 1_000 + 1;
        let book = fold(entries());
        let Compacted { kept, forgotten, .. } = book.compacted(later);
        let ids = |book: &Book| -> Vec<String> {
            book.invoices_after(None).unwrap().map(|invoice| invoice.terms.id.clone()).collect()
        };
        let rest = fold(kept);
        // The second was not told of, the others were not announced as expired.
        assert_eq!(
            (ids(&forgotten), ids(&rest)),
            (vec!["inv_1".to_owned()], ["inv_2", "inv_3", "inv_4"].map(String::from).to_vec())
        );
        assert_eq!((forgotten.unmatched().len(), rest.unmatched().len()), (1, 0));
        let mut again = rest.clone();
        entries().into_iter().filter(|entry| matches!(entry, Entry::Arrived(_))).for_each(|entry| again.apply(entry));
        assert_eq!(again, rest, "a payment that the wallet tells of again");
        let request = |number: u8| Request {
            reference: format!("order {number}"),
            asset: Asset::ETHER,
            amount: Amount(11),
            memo: None,
            expires_in: END,
        };
        let asked = |number| rest.request(&request(number), "inv_9".into(), 0, 9);
        assert_eq!(asked(2), Err(RequestError::OtherTerms("order 2".into())));
        let retired = RequestError::Retired { reference: "order 1".into(), id: "inv_1".into() };
        assert_eq!(asked(1), Err(retired), "a late retry makes no second invoice");
        assert!(matches!(asked(9), Ok(Requested::New(_))));
        // Once more: what is in the archive stays there.
        let twice = rest.compacted(later);
        assert_eq!((twice.generation, ids(&twice.forgotten).len()), (2, 0));
        assert_eq!(Book { generation: 1, ..fold(twice.kept) }, rest);
    }
}
