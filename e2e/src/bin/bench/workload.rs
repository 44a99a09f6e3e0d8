//! Prepared payments: signed, certified and encoded, so that sending one costs the generator almost nothing.
//!
//! The bench has the keys of the whole committee and votes as authorities do under load, with one signature over the
//! Merkle root of a batch of payments. The measured authority's vote is in none of the certificates, so it must check
//! every vote; in production its own is often among them.

use bytes::Bytes;
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, AuthorityKeys, Certificate, Digest, Domain, Epoch, GenesisBalance, Memo,
    Output, Outputs, Payment, Payout, SequenceNumber, ShardLayout, Transfer, VerifiedOrder, sign_payment_votes,
};
use fastpay_e2e::Failure;
use fastpay_rpc::proto::SubmitRequest;
use fastpay_rpc::proto::submit_request::Request;
use prost::Message;

use crate::draw::Pair;
use crate::flow::Place;

/// The distance between the recipients of a payout's outputs, a prime.
pub const SPREAD: usize = 7_919;

/// The initial balance of each account.
const START: Amount = Amount(1_000_000);

/// The accounts of the bench. Their keys are derived from numbers.
pub struct Accounts {
    keys: Vec<AccountKey>,
    ids: Vec<AccountId>,
}

impl Accounts {
    /// Derives the accounts on all cores.
    pub fn new(count: usize) -> Self {
        let numbers: Vec<u64> = (0..count as u64).collect();
        let keys = in_parallel(&numbers, |numbers| numbers.iter().map(|number| key(*number)).collect());
        let ids = keys.iter().map(AccountKey::account).collect();
        Self { keys, ids }
    }

    pub fn ids(&self) -> &[AccountId] {
        &self.ids
    }

    /// A genesis with enough balance for all payments of each account.
    pub fn balances(&self) -> Vec<GenesisBalance> {
        let balance = |account: &AccountId| GenesisBalance { account: *account, asset: Asset::ETHER, amount: START };
        self.ids.iter().map(balance).collect()
    }
}

fn key(number: u64) -> AccountKey {
    let mut seed = [3; 32];
    if let Some(start) = seed.first_chunk_mut() {
        *start = number.to_le_bytes();
    }
    AccountKey::ed25519(seed)
}

/// A payment ready to be sent.
pub struct Prepared {
    pub place: Place,
    /// The sender's shard.
    pub shard: u32,
    /// The two encoded requests, whose IDs are [`order_id`] and [`certificate_id`].
    pub order: Bytes,
    pub certificate: Bytes,
}

pub fn order_id(payment: u32) -> u64 {
    u64::from(payment) * 2
}

pub fn certificate_id(payment: u32) -> u64 {
    u64::from(payment) * 2 + 1
}

/// The payment that an answer is about, and whether it answers the order.
pub fn payment_of(id: u64) -> (u32, bool) {
    ((id / 2) as u32, id.is_multiple_of(2))
}

/// The voters of the certificates.
pub struct Voters<'a> {
    pub domain: &'a Domain,
    /// A quorum.
    pub keys: &'a [AuthorityKeys],
    /// The number of payments that share one signature of an authority.
    pub batch: usize,
}

/// Signs, certifies and encodes payments on all cores.
pub fn prepare(pairs: &[Pair], accounts: &Accounts, layout: ShardLayout, voters: &Voters<'_>) -> Vec<Prepared> {
    prepare_payouts(pairs, accounts, layout, voters, 1)
}

/// The same in orders of `outputs` outputs, if that is more than one.
pub fn prepare_payouts(
    pairs: &[Pair],
    accounts: &Accounts,
    layout: ShardLayout,
    voters: &Voters<'_>,
    outputs: usize,
) -> Vec<Prepared> {
    let places = places(pairs, accounts.ids().len());
    let numbered = (0..).zip(pairs.iter().zip(places));
    let numbered: Vec<_> =
        numbered.map(|(number, (pair, place))| Draft { number, pair: *pair, place, outputs }).collect();
    let batches: Vec<_> = numbered.chunks(voters.batch.max(1)).collect();
    in_parallel(&batches, |batches| {
        batches.iter().flat_map(|batch| prepare_batch(batch, accounts, layout, voters)).collect()
    })
}

/// Assigns sequence numbers to each sender's payments.
fn places(pairs: &[Pair], accounts: usize) -> Vec<Place> {
    let mut next = vec![0_u32; accounts];
    let place = |pair: &Pair| {
        let sequence = next.get(pair.sender).copied().unwrap_or_default();
        if let Some(next) = next.get_mut(pair.sender) {
            *next += 1;
        }
        Place { sender: pair.sender as u32, sequence }
    };
    pairs.iter().map(place).collect()
}

/// An unsigned payment.
#[derive(Clone, Copy)]
struct Draft {
    number: u32,
    pair: Pair,
    place: Place,
    outputs: usize,
}

fn prepare_batch(batch: &[Draft], accounts: &Accounts, layout: ShardLayout, voters: &Voters<'_>) -> Vec<Prepared> {
    let orders: Vec<VerifiedOrder> =
        batch.iter().filter_map(|draft| order(accounts, *draft, voters.domain).ok()).collect();
    let digests: Vec<Digest> = orders.iter().map(VerifiedOrder::digest).collect();
    let votes: Vec<_> =
        voters.keys.iter().filter_map(|keys| sign_payment_votes(keys, voters.domain, Epoch(0), &digests)).collect();
    let prepare = |(index, (draft, order)): (usize, (&Draft, &VerifiedOrder))| {
        let mut votes: Vec<_> = votes.iter().filter_map(|(votes, _)| votes.get(index).cloned()).collect();
        votes.sort_by_key(|vote| vote.authority);
        let certificate = Certificate { order: order.order().clone(), epoch: Epoch(0), votes };
        let encode = |id, request| Bytes::from(SubmitRequest { id, request: Some(request) }.encode_to_vec());
        Prepared {
            place: draft.place,
            shard: layout.shard_of(&order.transfer().sender()).0,
            order: encode(order_id(draft.number), Request::Order(order.order().into())),
            certificate: encode(certificate_id(draft.number), Request::Certificate((&certificate).into())),
        }
    };
    batch.iter().zip(&orders).enumerate().map(prepare).collect()
}

/// A signed order. It is verified because only a verified order has a digest, on which the votes are.
fn order(accounts: &Accounts, draft: Draft, domain: &Domain) -> Result<VerifiedOrder, Failure> {
    let Draft { pair, place, outputs, .. } = draft;
    let nobody = || Failure::wrong("no such account");
    let sender = accounts.keys.get(pair.sender).ok_or_else(nobody)?;
    let id = |number: usize| accounts.ids().get(number).copied().ok_or_else(nobody);
    let (asset, amount, memo) = (Asset::ETHER, Amount(1), Memo::ZERO);
    let sequence = SequenceNumber(u64::from(place.sequence));
    let transfer = if outputs > 1 {
        // Recipients are spread over all accounts, so that hardly any two outputs share cached data.
        let count = accounts.ids().len();
        let output = |output: usize| {
            let recipient = id((pair.recipient + output * SPREAD) % count)?;
            Ok(Output { recipient, amount, memo })
        };
        let outputs = (0..outputs).map(output).collect::<Result<_, Failure>>()?;
        let outputs = Outputs::new(outputs).map_err(Failure::wrong)?;
        Transfer::Payout(Payout { sender: id(pair.sender)?, asset, outputs, sequence, memo })
    } else {
        let (sender, recipient) = (id(pair.sender)?, id(pair.recipient)?);
        Transfer::Payment(Payment { sender, recipient, asset, amount, sequence, memo })
    };
    sender.order(domain, transfer).verify(domain).map_err(Failure::wrong)
}

/// Forged requests: each order was changed after its sender signed it.
pub fn forged(count: usize, accounts: &Accounts, domain: &Domain) -> Vec<Bytes> {
    let forge = |number: usize| {
        let senders = accounts.ids().len().max(2);
        let pair = Pair { sender: number % senders, recipient: (number + 1) % senders };
        let place = Place { sender: pair.sender as u32, sequence: 0 };
        let order = order(accounts, Draft { number: 0, pair, place, outputs: 1 }, domain).ok()?;
        let mut order = order.order().clone();
        if let Transfer::Payment(payment) = &mut order.transfer {
            payment.amount = Amount(2 + number as u128);
        }
        let request = Some(Request::Order((&order).into()));
        Some(Bytes::from(SubmitRequest { id: number as u64, request }.encode_to_vec()))
    };
    (0..count).filter_map(forge).collect()
}

/// Divides the work among all cores and keeps the order of results.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items.chunks(share).map(|items| scope.spawn(move || work(items))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("preparing does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forged_is_an_order_that_nobody_signed() {
        let domain = Domain::new(0, fastpay_core::PrimaryAddress::repeat_byte(7));
        let forged = forged(20, &Accounts::new(3), &domain);
        assert_eq!(forged.len(), 20);
        for request in forged {
            let Some(Request::Order(order)) = SubmitRequest::decode(request).unwrap().request else {
                panic!("not an order")
            };
            assert!(fastpay_core::TransferOrder::try_from(order).unwrap().verify(&domain).is_err());
        }
    }

    #[test]
    fn what_is_prepared_verifies_and_is_numbered_by_sender() {
        let members = (1..=4).map(|i| AuthorityKeys::from_secrets([i; 32], [i; 32]).unwrap());
        let keys: Vec<AuthorityKeys> = members.collect();
        let public = keys.iter().map(AuthorityKeys::public).collect();
        let committee = fastpay_core::Committee::new(Epoch(0), public).unwrap();
        let domain = Domain::new(0, fastpay_core::PrimaryAddress::repeat_byte(7));
        let accounts = Accounts::new(10);
        let layout = ShardLayout::new(2.try_into().unwrap());
        let pairs: Vec<_> = (0..100).map(|i| Pair { sender: i * i % 10, recipient: (i * i + 1) % 10 }).collect();
        let prepared = prepare(&pairs, &accounts, layout, &Voters { domain: &domain, keys: &keys[1..], batch: 8 });
        assert_eq!(prepared.len(), 100);
        let mut next = [0; 10];
        for (number, prepared) in (0..).zip(&prepared) {
            let order = SubmitRequest::decode(prepared.order.clone()).unwrap();
            let certificate = SubmitRequest::decode(prepared.certificate.clone()).unwrap();
            assert_eq!((payment_of(order.id), payment_of(certificate.id)), ((number, true), (number, false)));
            let (Some(Request::Order(order)), Some(Request::Certificate(certificate))) =
                (order.request, certificate.request)
            else {
                panic!("not an order and a certificate")
            };
            let order = fastpay_core::TransferOrder::try_from(order).unwrap().verify(&domain).unwrap();
            let certificate = Certificate::try_from(certificate).unwrap().verify(&domain, &committee).unwrap();
            assert_eq!(order.digest(), certificate.digest());
            let sender = prepared.place.sender as usize;
            assert_eq!(order.transfer().sender(), accounts.ids()[sender]);
            assert_eq!(order.transfer().sequence(), SequenceNumber(next[sender]));
            assert_eq!(prepared.shard, layout.shard_of(&accounts.ids()[sender]).0);
            next[sender] += 1;
        }
    }
}
