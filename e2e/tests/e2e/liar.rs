//! What members do that lie, or thieves with a member's keys: votes for two orders of one number, and a Closing that no
//! certificate bears out.

use std::fs::File;
use std::path::Path;

use fastpay_core::handover::{Closing, ReportedEntry};
use fastpay_core::{
    AccountKey, AuthorityKeys, Certificate, Digest, Domain, Epoch, SequenceNumber, TransactionIndex, TransferOrder,
    VerifiedCertificate, sign_vote,
};
use fastpay_e2e::{Network, PATIENCE, wait_for};
use fastpay_node::authority::handover::Closings;

use crate::proxy::Proxy;
use crate::rotation::Clients;
use crate::scene::{key, payment};

/// Puts a proxy before each port of an authority, in the endpoints file, behind which the authority is to lie. What the
/// test asks it itself is answered honestly.
pub async fn behind_proxies(network: &mut Network, number: usize) -> Vec<Proxy> {
    let name = network.authorities[number].member().name;
    let path = network.endpoints_file();
    let mut endpoints = fastpay_client::Endpoints::read(&path).unwrap();
    let own = endpoints.authorities.iter_mut().find(|authority| authority.name == name).unwrap();
    let mut proxies = Vec::new();
    for address in &mut own.shards {
        let proxy = Proxy::start(network.ports().next(1).unwrap(), address).await;
        *address = proxy.url().to_owned();
        proxies.push(proxy);
    }
    std::fs::write(path, serde_json::to_vec_pretty(&endpoints).unwrap()).unwrap();
    proxies
}

/// Signs a Closing that no certificate bears out, and that has fewer entries than any honest one, so that it is taken
/// first: an account that nobody knows has taken three numbers. Puts it into a data folder, as if it had been fetched.
pub fn plant_closing(data: &Path, keys: &AuthorityKeys, domain: &Domain, epoch: Epoch) {
    let owner = key(9);
    let newest = owner.order(domain, payment(&owner, key(8).account(), 1, 2));
    let digest = domain.transfer_digest(&newest.transfer);
    let entry = ReportedEntry::account(owner.account(), SequenceNumber(3), Some((newest, digest)));
    let closing = Closing::new(epoch, TransactionIndex(0), Digest::ZERO, std::iter::once(entry.entry()));
    let signed = closing.sign(keys, domain);
    let path = Closings::of(data, 0).path((epoch, signed.authority));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    signed.write([Ok(entry)].into_iter(), &mut File::create(path).unwrap()).unwrap();
}

/// Two orders of one owner for its first number. The one has a certificate, which nobody but the owner has.
pub struct Dispute {
    pub certified: VerifiedCertificate,
    pub other: TransferOrder,
}

impl Dispute {
    /// Some authorities vote for the one order, some for the other one, and the liar for both.
    pub async fn open(
        clients: &Clients,
        owner: &AccountKey,
        (for_one, for_other): (&[usize], &[usize]),
        liar: Option<&AuthorityKeys>,
    ) -> Self {
        let order = |amount| owner.order(&clients.domain, payment(owner, key(8).account(), amount, 0));
        let (one, other) = (order(5), order(6));
        let committee = clients.committees.lock().unwrap().current().clone();
        let votes = async |order: &TransferOrder, voters: &[usize]| {
            let (verified, mut votes) = (order.clone().verify(&clients.domain).unwrap(), Vec::new());
            for voter in voters {
                let vote = wait_for(PATIENCE, async || {
                    let vote = clients.authorities[*voter].shard_of(&owner.account()).order(order).await;
                    vote.map_err(|error| error.to_string())
                });
                votes.push(vote.await.unwrap().1);
            }
            let digest = verified.digest();
            votes.extend(liar.map(|keys| sign_vote(keys, &clients.domain, committee.epoch(), &order.transfer, digest)));
            let votes: Result<Vec<_>, _> =
                votes.into_iter().map(|vote| vote.verify(&clients.domain, &committee, &verified)).collect();
            Certificate::from_votes(&verified, &committee, &votes.unwrap())
        };
        let certified = votes(&one, for_one).await.expect("a quorum has voted");
        assert!(votes(&other, for_other).await.is_none(), "both have a certificate");
        Self { certified, other }
    }

    /// Those of these authorities that vote for the order without a certificate.
    pub async fn voters_for_other(&self, clients: &Clients, asked: &[usize]) -> Vec<usize> {
        let mut voters = Vec::new();
        for number in asked {
            let shard = clients.authorities[*number].shard_of(&self.other.transfer.sender());
            let answered = wait_for(PATIENCE, async || match shard.order(&self.other).await {
                Ok(_) => Ok(true),
                Err(error) if error.is_retryable() => Err(error.to_string()),
                Err(_) => Ok(false),
            });
            if answered.await.unwrap() {
                voters.push(*number);
            }
        }
        voters
    }
}
