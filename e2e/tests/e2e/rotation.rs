//! All authorities of a committee change their keys while payments go on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use alloy::primitives::{Bytes, U256};
use alloy::sol_types::{SolCall, SolError};
use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Authority as Member, Certificate, Committee, Committees, Domain, Epoch, Memo,
    PrimaryAddress, Redemption, SequenceNumber, Transfer, TransferOrder, VerifiedCertificate, VerifiedContractVote,
    VerifiedVote,
};
use fastpay_e2e::{
    Network, OUTFLOW_DELAY_S, PATIENCE, Sources, User, VOTES_VALIDITY_S, bring_all_up_to_date, http_get, wait_for,
};
use fastpay_ethereum::{ContractRedemption, IFastPay, certified_redemption};
use fastpay_rpc::BatchAnswer;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::scene::{key, on_chain, payment};

/// The council's short delay, in seconds.
pub const DELAY_S: u64 = 86_400;
const RECIPIENT: PrimaryAddress = PrimaryAddress::repeat_byte(0xBE);

/// A client of the committee. It follows epochs by the epoch that comes with each vote.
#[derive(Clone)]
pub struct Clients {
    pub authorities: Vec<AuthorityClient>,
    pub committees: Arc<Mutex<Committees>>,
    pub domain: Domain,
}

impl Clients {
    fn committee(&self, epoch: Epoch) -> Option<Arc<Committee>> {
        self.committees.lock().unwrap().get(epoch).cloned()
    }

    /// Collects votes until a quorum of one epoch has voted.
    pub async fn certify(&self, order: &TransferOrder) -> VerifiedCertificate {
        let verified = order.clone().verify(&self.domain).unwrap();
        let certified = wait_for(PATIENCE, async || {
            let mut votes: BTreeMap<Epoch, Vec<VerifiedVote>> = BTreeMap::new();
            for authority in &self.authorities {
                let Ok((epoch, vote)) = authority.shard_of(&order.transfer.sender()).order(order).await else {
                    continue;
                };
                let Some(committee) = self.committee(epoch) else { continue };
                votes.entry(epoch).or_default().push(vote.verify(&self.domain, &committee, &verified).unwrap());
            }
            let mut certificates = votes.iter().filter_map(|(epoch, votes)| {
                Certificate::from_votes(&verified, self.committee(*epoch)?.as_ref(), votes)
            });
            certificates.next_back().ok_or_else(|| "no quorum".to_owned())
        });
        certified.await.unwrap()
    }

    /// Sends a certificate until a quorum of the newest committee has confirmed it: fewer make no certificate of the next
    /// number.
    pub async fn settle(&self, certificate: &Certificate) {
        self.settle_while(certificate, || self.committees.lock().unwrap().current().quorum()).await;
    }

    /// Sends it until at least this many authorities have confirmed it.
    pub async fn settle_at(&self, count: usize, certificate: &Certificate) {
        self.settle_while(certificate, || count).await;
    }

    async fn settle_while(&self, certificate: &Certificate, needed: impl Fn() -> usize) {
        let settled = wait_for(PATIENCE, async || {
            let mut confirmed = 0;
            for authority in &self.authorities {
                let sender = certificate.order.transfer.sender();
                confirmed += usize::from(authority.shard_of(&sender).confirm(certificate).await.is_ok());
            }
            if confirmed >= needed() { Ok(()) } else { Err(format!("{confirmed} have confirmed")) }
        });
        settled.await.unwrap();
    }

    pub async fn do_it(&self, owner: &AccountKey, transfer: Transfer) -> Certificate {
        let certificate = self.certify(&owner.order(&self.domain, transfer)).await.into_certificate();
        self.settle(&certificate).await;
        certificate
    }

    /// A quorum's votes of the current epoch for redemptions that it has confirmed.
    async fn batch(&self, redemptions: &[Redemption]) -> (Epoch, Vec<u8>) {
        let names: Vec<_> = redemptions.iter().map(|wanted| (wanted.sender, wanted.sequence)).collect();
        let committee = self.committees.lock().unwrap().current().clone();
        let digest = self.domain.redemption_batch_vote_digest(committee.epoch(), redemptions);
        let mut votes = Vec::new();
        for authority in &self.authorities {
            match authority.shards()[0].vote_redemption_batch(&names).await {
                Ok(BatchAnswer::Vote { vote, .. }) => votes.push(vote.verify(&committee, digest).unwrap()),
                Ok(BatchAnswer::Missing(_) | BatchAnswer::Uncovered(_)) | Err(ClientError::Unreachable(_)) => {}
                answer => panic!("{answer:?}"),
            }
        }
        let packed = VerifiedContractVote::quorum(&committee, digest, &votes).expect("a quorum has confirmed all");
        (committee.epoch(), packed)
    }
}

fn redeems(owner: &AccountKey, amount: u128, sequence: u64) -> Redemption {
    Redemption {
        sender: owner.account(),
        recipient: RECIPIENT,
        asset: Asset::ETHER,
        amount: Amount(amount),
        fee: Amount::ZERO,
        sequence: SequenceNumber(sequence),
        memo: Memo::ZERO,
    }
}

pub async fn deposit(network: &Network, owner: &AccountKey, wei: u64) {
    let call = IFastPay::depositEtherCall { recipient: owner.account().0.into() };
    let (chain, contract) = (network.chain().unwrap(), network.contract().unwrap());
    chain.send(contract, U256::from(wei), call.abi_encode().into()).await.unwrap();
}

/// The call that redeems one certificate on the contract.
fn redeem(certificate: &Certificate, committee: &Committee) -> Bytes {
    let certified = certified_redemption(certificate, committee).unwrap();
    let call =
        IFastPay::redeemCall { redemption: certified.redemption, epoch: certified.epoch, votes: certified.votes };
    call.abi_encode().into()
}

/// Operators announce the committee of epoch 1, and accept and install it a day later. `pass` lets that day pass.
pub async fn rotate(network: &Network, voters: &[usize], members: &[Member], pass: impl AsyncFnOnce(u64)) -> Committee {
    let next = Committee::new(Epoch(1), members.to_vec()).unwrap();
    let rotation = network.propose("keys-1", members, voters, (1, 1)).unwrap();
    for said in network.sign(&rotation).unwrap() {
        for shown in ["epoch 1 with 4 authorities, quorum 3", "new keys", "no longer", "recovery: 0x", "(as now)"] {
            assert!(said.err.contains(shown), "{shown} is not in {}", said.err);
        }
    }
    let voter = &network.authorities[voters[0]];
    let sign = |proofs: &[PathBuf], out: &str| {
        let refused = voter.vote("sign", &rotation.announcement, proofs, &network.place().path(out)).unwrap();
        assert!(!refused.status.success(), "{}", refused.err);
        refused.err
    };
    let again = network.vote_file(1, "sign", voters[0]);
    voter.vote("sign", &rotation.announcement, &rotation.proofs, &again).unwrap().success().unwrap();
    std::fs::write(network.place().path("another.json"), "another answer").unwrap();
    let other = sign(&rotation.proofs, "another.json");
    assert!(other.contains("cannot write"), "{other}");
    let unproven = sign(&rotation.proofs[1..], "unproven.json");
    assert!(unproven.contains("there is no proof of"), "{unproven}");
    network.announce(&rotation).unwrap();
    let again = network.announce_unendorsed(&rotation).unwrap().success().unwrap().out;
    assert!(again.contains("\"announced\""), "{again}");
    let early = voter.vote("accept", &rotation.announcement, &rotation.proofs, &network.place().path("early.json"));
    let early = early.unwrap().err;
    assert!(early.contains("can be installed from"), "{early}");
    pass(DELAY_S + 1).await;
    network.install(&rotation).await.unwrap();
    // The same file is rejected once the installation is final.
    wait_for(PATIENCE, async || {
        let late = voter.vote("sign", &rotation.announcement, &rotation.proofs, &network.place().path("late.json"));
        let said = late.unwrap().err;
        if said.contains("only epoch 2 can be announced") { Ok(()) } else { Err(said) }
    })
    .await
    .unwrap();
    next
}

/// Waits until an authority votes in this epoch.
pub async fn wait_for_epoch(network: &Network, number: usize, epoch: u64) {
    wait_in_epoch(network, number, epoch, true).await;
}

/// Waits until an authority has followed into this epoch, and votes in it or does not.
pub async fn wait_in_epoch(network: &Network, number: usize, epoch: u64, votes: bool) {
    let votes = format!("\"votes\":{votes}");
    let http = network.authorities[number].endpoints().unwrap().http.clone().unwrap();
    let expected = [format!("\"epoch\":\"{epoch}\""), format!("\"epoch\":{epoch}")];
    let ready = wait_for(PATIENCE, async || {
        let (_, body) = http_get(&http, "/ready").await.map_err(|error| error.to_string())?;
        let there = expected.iter().any(|expected| body.contains(expected)) && body.contains(&votes);
        if there { Ok(()) } else { Err(format!("authority {number}: {body}")) }
    });
    ready.await.unwrap();
}

/// Payments of one account, one after the other, until it is ended.
pub struct Load {
    stop: watch::Sender<bool>,
    settled: Arc<AtomicUsize>,
    paying: JoinHandle<(AccountKey, u64)>,
}

impl Load {
    pub fn start(clients: &Clients, payer: AccountKey, to: AccountId) -> Self {
        let (stop, stopped) = watch::channel(false);
        let settled = Arc::new(AtomicUsize::new(0));
        let (counter, clients) = (settled.clone(), clients.clone());
        let paying = tokio::spawn(async move {
            let mut sequence = 0;
            while !*stopped.borrow() {
                clients.do_it(&payer, payment(&payer, to, 1, sequence)).await;
                sequence += 1;
                counter.fetch_add(1, Ordering::Relaxed);
            }
            (payer, sequence)
        });
        Self { stop, settled, paying }
    }

    /// Some more are settled.
    pub async fn more(&self, what: &str) {
        let from = self.settled.load(Ordering::Relaxed);
        let grown = wait_for(PATIENCE, async || {
            let now = self.settled.load(Ordering::Relaxed);
            if now >= from + 3 { Ok(()) } else { Err(format!("no payments {what}: {now}")) }
        });
        grown.await.unwrap();
    }

    /// The account that has paid, and its next number.
    pub async fn end(self) -> (AccountKey, u64) {
        self.stop.send_replace(true);
        self.paying.await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_rotated_under_load_and_nothing_certified_is_stranded() {
    let mut network = on_chain("rotation").await;
    let endpoints = network.endpoints_file();
    network.authorities.iter().for_each(|authority| authority.set_endpoints(&endpoints).unwrap());
    network.start_authorities().await.unwrap();
    let first = network.committee().clone();
    let clients = Clients {
        authorities: network.clients().unwrap(),
        committees: Arc::new(Mutex::new(Committees::new(first.clone()).unwrap())),
        domain: *network.domain(),
    };
    let (payer, owner, saver) = (key(0), key(2), key(4));
    for account in [&payer, &owner, &saver] {
        deposit(&network, account, 1_000_000).await;
    }

    let load = Load::start(&clients, payer, owner.account());
    load.more("before").await;

    // Before: a confirmed redemption, one that waits for long, and a payment that only its sender knows.
    let soon = clients.do_it(&owner, redeems(&owner, 100, 0).into()).await;
    let late = clients.do_it(&owner, redeems(&owner, 200, 1).into()).await;
    let kept = clients.certify(&saver.order(&clients.domain, payment(&saver, owner.account(), 5, 0))).await;

    // One authority is away during the rotation. The others get the new keys in addition to the old ones, one by one.
    let members: Vec<Member> = network.authorities.iter_mut().map(|a| a.add_keys("keys-1").unwrap()).collect();
    network.authority(3).unwrap().kill();
    for number in 0..3 {
        let authority = network.authority(number).unwrap();
        authority.stop().unwrap();
        authority.start().unwrap();
        authority.wait_ready().await.unwrap();
    }
    let pass = async |seconds| network.chain().unwrap().pass(seconds).await.unwrap();
    let second = rotate(&network, &[0, 1, 2], &members, pass).await;
    clients.committees.lock().unwrap().install(second.clone()).unwrap();
    for number in 0..3 {
        wait_for_epoch(&network, number, 1).await;
    }
    load.more("with three authorities of the new epoch").await;
    clients.settle(kept.certificate()).await;
    let contract = network.contract().unwrap();
    network.chain().unwrap().send(contract, U256::ZERO, redeem(&soon, &first)).await.unwrap();
    assert_eq!(network.chain().unwrap().ether_of(RECIPIENT).await.unwrap(), U256::from(100));

    // It comes back, reads the rotation, joins, and votes with its new keys: without it there is no quorum now.
    network.authority(3).unwrap().start().unwrap();
    wait_for_epoch(&network, 3, 1).await;
    network.authority(2).unwrap().kill();
    let mine = redeems(&saver, 50, 1);
    let shard = clients.authorities[3].shard_of(&saver.account());
    shard.confirm(kept.certificate()).await.unwrap();
    let certificate = clients.do_it(&saver, mine.clone().into()).await;
    assert_eq!(certificate.epoch, Epoch(1));
    network.authority(2).unwrap().start().unwrap();

    // The old votes have expired; the authorities that confirmed it vote again.
    network.chain().unwrap().pass(VOTES_VALIDITY_S + 1).await.unwrap();
    let call = json!([{ "to": contract, "data": redeem(&late, &first) }, "latest"]);
    let refused =
        network.chain().unwrap().request::<serde_json::Value>("eth_call", call).await.unwrap_err().to_string();
    assert!(refused.contains(&alloy::primitives::hex::encode(IFastPay::EpochEnded::SELECTOR)), "{refused}");
    wait_for_epoch(&network, 2, 1).await;
    // With different quorums, too few authorities would have confirmed all of a batch.
    for certificate in [kept.certificate(), &late, &certificate] {
        clients.settle_at(4, certificate).await;
    }
    let batch = [redeems(&owner, 200, 1), mine];
    let (epoch, votes) = clients.batch(&batch).await;
    let redemptions = batch.iter().map(ContractRedemption::from).collect();
    let call = IFastPay::redeemBatchCall { redemptions, epoch: epoch.0, votes: votes.into() };
    let chain = network.chain().unwrap();
    chain.send(contract, U256::ZERO, call.abi_encode().into()).await.unwrap();
    assert_eq!(chain.ether_of(RECIPIENT).await.unwrap(), U256::from(350));

    // The old keys are removed.
    let authority = network.authority(0).unwrap();
    authority.stop().unwrap();
    authority.drop_first_keys().unwrap();
    authority.start().unwrap();
    authority.wait_ready().await.unwrap();
    wait_for_epoch(&network, 0, 1).await;
    load.more("at the end").await;
    let (payer, sequence) = load.end().await;

    // Brought up to date, all authorities agree on every balance.
    let accounts = [&payer, &owner, &saver].map(AccountKey::account);
    for account in accounts {
        let count = clients.authorities[0].shard_of(&account).account(account).await.unwrap().next_sequence.0;
        for number in 0..count.max(if account == payer.account() { sequence } else { 0 }) {
            let mut found = None;
            for authority in &clients.authorities {
                found = found.or(authority.shard_of(&account).certificate(account, SequenceNumber(number)).await.ok());
            }
            let certificate = found.expect("somebody has confirmed it");
            for authority in &clients.authorities {
                authority.shard_of(&account).confirm(&certificate).await.unwrap();
            }
        }
    }
    for (account, amount) in accounts.into_iter().zip([
        1_000_000 - u128::from(sequence),
        1_000_000 + u128::from(sequence) + 5 - 300,
        1_000_000 - 55,
    ]) {
        for authority in &clients.authorities {
            let there = wait_for(PATIENCE, async || {
                let state = authority.shard_of(&account).account(account).await.map_err(|error| error.to_string())?;
                let held = state.balance(Asset::ETHER);
                if held == crate::scene::balance(amount) {
                    Ok(())
                } else {
                    Err(format!("{account} holds {held}, not {amount}"))
                }
            });
            there.await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_compromised_epoch_queued_is_executed_with_new_votes_by_relayer_and_owner() {
    let mut network = on_chain("compromised").await;
    let second: Vec<Member> = network.authorities.iter_mut().map(|a| a.add_keys("keys-1").unwrap()).collect();
    for authority in &network.authorities {
        authority.set_endpoints(&network.endpoints_file()).unwrap();
        authority.set_archive(OUTFLOW_DELAY_S * 100).unwrap();
    }
    network.start_authorities().await.unwrap();
    network.start_relayer().unwrap();
    let alice = User::new(&network, "alice").await.unwrap();
    let own = alice.import_rich_key("own", 0).await.unwrap();
    alice.fastpay(["deposit", "10"]).await.unwrap();
    let out = RECIPIENT.to_string();
    // Six of ten may leave at once, and then only a small part of the remaining four.
    let paid = alice.fastpay(["redeem", "6", "--to", &out, "--wait", "120"]).await.unwrap();
    assert_eq!(paid["redeemed"]["by"], "relayer", "{paid}");
    let relayed = alice.fastpay(["redeem", "2", "--to", &out, "--wait", "120"]).await.unwrap();
    network.relayer().unwrap().stop().unwrap();
    let brought = alice.fastpay(["redeem", "1.8", "--to", &out, "--self"]).await.unwrap();
    for (queued, relayer) in
        [(&relayed, network.relayer().unwrap().address()), (&brought, own.ethereum_address().unwrap())]
    {
        let waits = &queued["queued"];
        assert_eq!((&waits["relayer"], &waits["needsVotes"]), (&json!(relayer), &json!(false)), "{queued}");
    }
    bring_all_up_to_date(&network, &[own]).await.unwrap();

    // The keys of epoch 0 were compromised.
    let rotation = network.propose("keys-1", &second, &[0, 1, 2], (1, 0)).unwrap();
    network.sign(&rotation).unwrap();
    network.announce(&rotation).unwrap();
    network.chain().unwrap().pass(DELAY_S + 1).await.unwrap();
    network.install(&rotation).await.unwrap();
    let mut sources = Sources::default();
    for number in 0..4 {
        wait_in_epoch(&network, number, 1, false).await;
        network.authority(number).unwrap().stop().unwrap();
        sources.journals.push(network.copy_data(number, &format!("data-{number}")).unwrap());
        network.authority(number).unwrap().start().unwrap();
    }
    let report = network.rebuilt(1, &sources).await.unwrap();
    network.begin_anew(&report, &sources).await.unwrap();
    for number in 0..4 {
        wait_for_epoch(&network, number, 1).await;
    }
    let chain = network.chain().unwrap();
    chain.pass(OUTFLOW_DELAY_S).await.unwrap();
    let wei = |text: &str| fastpay_wallet::parse_amount(text, 18).unwrap();
    let contract = network.contract().unwrap();
    for (sequence, amount) in [(1, "2"), (2, "1.8")] {
        let redemption = Redemption { sender: own, ..redeems(&key(0), wei(amount).0, sequence) };
        let call = IFastPay::executeQueuedCall { redemption: (&redemption).into(), votes: Bytes::new() };
        let call = json!([{ "to": contract, "data": Bytes::from(call.abi_encode()) }, "latest"]);
        let refused = chain.request::<serde_json::Value>("eth_call", call).await.unwrap_err().to_string();
        let expected = alloy::primitives::hex::encode(IFastPay::EpochCompromised::SELECTOR);
        assert!(refused.contains(&expected), "{refused}");
    }

    // The owner and the relayer each get votes of the new committee for the redemptions that they submitted.
    let executed = alice.fastpay(["execute", "--sequence", "2"]).await.unwrap();
    assert_eq!(executed["executed"][0]["needsVotes"], true, "{executed}");
    assert_eq!(network.chain().unwrap().ether_of(RECIPIENT).await.unwrap(), U256::from(wei("7.8").0));
    network.start_relayer().unwrap();
    wait_for(PATIENCE, async || {
        let found = network.chain().unwrap().ether_of(RECIPIENT).await.map_err(|error| error.to_string())?;
        if found == U256::from(wei("9.8").0) { Ok(()) } else { Err(format!("{found} wei are paid")) }
    })
    .await
    .unwrap();
    assert_eq!(alice.fastpay(["audit"]).await.unwrap()["ok"], true);
}
