//! Gathers certificates from files and old journals, and keeps those that a quorum signed. One that cannot be read or
//! does not verify is named in the report: whoever publishes certificates must not be able to stop a recovery. Of journals
//! it also counts how many members executed an order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::Cut;
use fastpay_core::{
    AuthorityName, Base, Certificate, Committees, Digest, Domain, Epoch, Record, Request, VerifiedCertificate,
    VerifiedRequest, Verifier,
};
use fastpay_program::files;

use super::{RecoverError, unreadable};
use crate::authority::certification::{CheckpointError, Journals, Progress};
use crate::authority::storage::names_in;

/// So many signatures are checked together: more save nothing.
const CERTIFICATES_PER_BATCH: usize = 256;
/// The longest line: the largest certificate, a payout with the votes of the largest committee, has fewer digits.
const LINE_BYTES_MAX: usize = 1 << 20;
/// So many invalid certificates are named; the others are counted.
const INVALID_NAMED_MAX: usize = 1_000;

/// Valid certificates by the digests of their orders, and their epochs: those of one may count, and of another not.
pub(super) type Verified = BTreeMap<(Digest, Epoch), VerifiedCertificate>;

/// Certificates that are not believed, with the place and the defect of the first ones.
#[derive(Debug, Default)]
pub(super) struct Invalid {
    pub named: Vec<String>,
    pub count: u64,
}

impl Invalid {
    fn add(&mut self, place: &str, defect: &dyn std::fmt::Display) {
        self.count = self.count.saturating_add(1);
        if self.named.len() < INVALID_NAMED_MAX {
            self.named.push(format!("{place}: {defect}"));
        }
    }
}

/// What was gathered.
pub(super) struct Gathered {
    /// The valid certificates.
    pub verified: Verified,
    /// What is said of the others.
    pub invalid: Invalid,
    /// How many members executed an order, by its digest.
    pub executed_by: BTreeMap<Digest, usize>,
    /// Of how many members data folders were read that have all that they executed since the checkpoint.
    pub folders: u64,
}

/// The certificates that are known.
pub(super) struct Certificates<'a> {
    domain: Domain,
    committees: &'a Committees,
    /// What the checkpoint includes needs no certificate.
    base: &'a Cut,
    /// The checkpoint's number.
    number: u64,
    verifier: Verifier,
    waiting: Vec<(String, Certificate)>,
    verified: Verified,
    invalid: Invalid,
    /// The orders that members executed.
    executed: BTreeMap<AuthorityName, BTreeSet<Digest>>,
    /// The members whose data folders have all that they executed since the checkpoint.
    whole: BTreeSet<AuthorityName>,
}

impl<'a> Certificates<'a> {
    pub(super) fn new(domain: &Domain, committees: &'a Committees, (base, number): (&'a Cut, u64)) -> Self {
        Self {
            domain: *domain,
            committees,
            base,
            number,
            verifier: Verifier::new(*domain),
            waiting: Vec::new(),
            verified: BTreeMap::new(),
            invalid: Invalid::default(),
            executed: BTreeMap::new(),
            whole: BTreeSet::new(),
        }
    }

    /// Reads a file, or all files of a folder.
    pub(super) fn read(&mut self, path: &Path, told: Progress<'_>) -> Result<(), RecoverError> {
        let failed = |error: std::io::Error| unreadable(path, &error);
        let mut paths: Vec<PathBuf> = match path.is_dir() {
            true => files::names(path).map_err(failed)?.into_iter().map(|name| path.join(name)).collect(),
            false => vec![path.to_owned()],
        };
        paths.sort();
        for file in paths {
            told(format!("reading {}", file.display()));
            self.read_file(&file).map_err(|error| unreadable(&file, &error))?;
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> std::io::Result<()> {
        let (mut reader, mut line) = (BufReader::new(File::open(path)?), Vec::new());
        for number in 1_u64.. {
            line.clear();
            let limit = LINE_BYTES_MAX as u64 + 1;
            if reader.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let place = format!("{}, line {number}", path.display());
            match line.trim_ascii() {
                [] => {}
                text => match decode(text) {
                    Some(certificate) => self.add(place, certificate),
                    None => self.invalid.add(&place, &"no certificate"),
                },
            }
        }
        Ok(())
    }

    /// Reads what an authority has executed or kept. Copies of a member's folder count once.
    pub(super) fn read_journals(&mut self, data: &Path, told: Progress<'_>) -> Result<(), RecoverError> {
        let journals = Journals::open(data)?;
        let names = names_in(data).map_err(CheckpointError::from)?;
        let is_member = |name: &AuthorityName| self.committees.iter().any(|committee| committee.member(name).is_some());
        let member = names.iter().filter_map(|name| name.parse().ok()).find(is_member);
        let (mut executed, mut begins_at) = (BTreeSet::new(), 0);
        let add_all = |records: &mut dyn Iterator<Item = (_, Record)>| {
            for (_, record) in records {
                if let Record::Base(base) = &record
                    && let Base::Checkpoint(ledger) = &**base
                {
                    begins_at = begins_at.max(ledger.number);
                }
                let kept = match &record {
                    Record::Seen { certificate } => Some(certificate),
                    record => {
                        let of = record.certificate();
                        executed.extend(of.map(|of| self.domain.transfer_digest(&of.order.transfer)));
                        of
                    }
                };
                if let Some(certificate) = kept {
                    self.add(data.display().to_string(), (**certificate).clone());
                }
            }
        };
        journals.read(&mut *told, add_all)?;
        if begins_at > self.number {
            told(format!("{} has only what was executed after checkpoint {begins_at}", data.display()));
        }
        if let Some(member) = member {
            self.executed.entry(member).or_default().append(&mut executed);
            self.whole.extend((begins_at <= self.number).then_some(member));
        }
        Ok(())
    }

    fn add(&mut self, place: String, certificate: Certificate) {
        let transfer = &certificate.order.transfer;
        if transfer.sequence() < self.base.next(&transfer.sender())
            || self.verified.contains_key(&(self.domain.transfer_digest(transfer), certificate.epoch))
        {
            return;
        }
        self.waiting.push((place, certificate));
        if self.waiting.len() >= CERTIFICATES_PER_BATCH {
            self.verify();
        }
    }

    fn verify(&mut self) {
        let (places, certificates): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting).into_iter().unzip();
        let requests = certificates.into_iter().map(Request::Certificate).collect();
        let verdicts = self.verifier.verify(requests, self.committees, &mut rand::rng());
        for (place, verdict) in places.into_iter().zip(verdicts) {
            match verdict {
                Ok(VerifiedRequest::Certificate(certificate)) => {
                    let epoch = certificate.certificate().epoch;
                    self.verified.insert((certificate.digest(), epoch), certificate);
                }
                Ok(VerifiedRequest::Order(_) | VerifiedRequest::Attested(_)) => {
                    unreachable!("a certificate was asked about")
                }
                Err(error) => self.invalid.add(&place, &error),
            }
        }
    }

    /// What was gathered.
    pub(super) fn finish(mut self) -> Gathered {
        self.verify();
        let (mut executed_by, folders) = (BTreeMap::<_, usize>::new(), self.whole.len() as u64);
        for digest in self.executed.into_values().flatten() {
            let members = executed_by.entry(digest).or_default();
            *members = members.saturating_add(1);
        }
        Gathered { verified: self.verified, invalid: self.invalid, executed_by, folders }
    }
}

/// A certificate as `fastpay show --certificate` prints it: the hexadecimal digits of its bytes.
fn decode(text: &[u8]) -> Option<Certificate> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    borsh::from_slice(&hex::decode(digits).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::SequenceNumber;
    use fastpay_testkit::{TestAccount, TestCommittee, payment};

    #[test]
    fn certificates_of_all_files_are_verified_and_what_is_none_is_named() {
        let (committee, folder) = (TestCommittee::new(4), tempfile::tempdir().unwrap());
        let (from, to) = (TestAccount::numbered(0), TestAccount::numbered(1));
        let certificate =
            |number| committee.certificate(&from.sign(&committee.domain, payment(from.id(), to.id(), 1, number)));
        let line = |certificate: &Certificate| format!("0x{}\n", hex::encode(borsh::to_vec(certificate).unwrap()));
        let (mut forged, mut foreign) = (certificate(4), certificate(4));
        forged.votes[0] = certificate(3).votes[0].clone();
        foreign.epoch = Epoch(7);
        let first = [line(&certificate(1)), line(&certificate(2)), "\n".into(), line(&certificate(2))].concat();
        std::fs::write(folder.path().join("a"), first).unwrap();
        let long = "0".repeat(LINE_BYTES_MAX + 2) + "\n";
        let second = [line(&forged), "0x00\n".into(), line(&foreign), long, line(&certificate(3))].concat();
        std::fs::write(folder.path().join("b"), second).unwrap();

        let committees = Committees::new(committee.committee.clone()).unwrap();
        let base = Cut { next: [(from.id(), SequenceNumber(2))].into(), ..Cut::default() };
        let mut known = Certificates::new(&committee.domain, &committees, (&base, 0));
        known.read(folder.path(), &mut |_| ()).unwrap();
        let Gathered { verified, invalid: Invalid { named, count }, .. } = known.finish();
        let numbers: std::collections::BTreeSet<_> =
            verified.values().map(|known| known.transfer().sequence().0).collect();
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [2, 3]);
        let place = |line: u64| format!("{}, line {line}: ", folder.path().join("b").display());
        assert_eq!((named.len() as u64, count), (5, 5), "the long line counts twice: {named:?}");
        for line in 1..=5 {
            assert!(named.iter().any(|said| said.starts_with(&place(line))), "line {line}: {named:?}");
        }
        let missing = known_error(&committees, &committee.domain, &folder.path().join("c"));
        assert!(matches!(missing, RecoverError::File { .. }), "{missing}");
    }

    #[test]
    fn an_order_that_is_certified_in_two_epochs_keeps_both_certificates_in_any_order() {
        let (first, folder) = (TestCommittee::new(4), tempfile::tempdir().unwrap());
        let next = first.rotated();
        let mut committees = Committees::new(first.committee.clone()).unwrap();
        committees.install(next.committee.clone()).unwrap();
        let (from, to) = (TestAccount::numbered(0), TestAccount::numbered(1));
        let order = from.sign(&first.domain, payment(from.id(), to.id(), 1, 0));
        let files = [("a", &first), ("b", &next)].map(|(name, committee)| {
            let path = folder.path().join(name);
            std::fs::write(&path, hex::encode(borsh::to_vec(&committee.certificate(&order)).unwrap())).unwrap();
            path
        });
        let base = Cut::default();
        for order in [[0, 1], [1, 0]] {
            let mut known = Certificates::new(&first.domain, &committees, (&base, 0));
            for file in order {
                known.read(&files[file], &mut |_| ()).unwrap();
                known.verify();
            }
            let Gathered { verified, invalid, .. } = known.finish();
            let epochs: Vec<_> = verified.keys().map(|(_, epoch)| epoch.0).collect();
            assert_eq!((epochs, invalid.count), (vec![0, 1], 0));
        }
    }

    fn known_error(committees: &Committees, domain: &Domain, path: &Path) -> RecoverError {
        let base = Cut::default();
        Certificates::new(domain, committees, (&base, 0)).read(path, &mut |_| ()).unwrap_err()
    }
}
