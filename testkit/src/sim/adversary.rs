//! Misbehaving clients, which collude with the Byzantine authorities and get any vote of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::AuthorityClient;
use fastpay_client::Network;
use fastpay_core::{
    AccountId, Amount, Certificate, Memo, Output, Outputs, Payment, Payout, PrimaryAddress, Redemption, SequenceNumber,
    Transfer, TransferOrder, VerifiedVote, Vote,
};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::byzantine;
use super::world::{ASSETS, World, lock};

/// An order of its own, with the votes for it by epoch.
struct Begun {
    order: TransferOrder,
    votes: BTreeSet<(usize, Vec<u8>)>,
    held: Vec<(usize, Vote)>,
}

/// A misbehaving client.
struct Adversary {
    world: Arc<World>,
    number: usize,
    network: Network,
    begun: Vec<Begun>,
    /// Its account's next number, to its knowledge.
    next: u64,
}

/// Runs a misbehaving client until faults end.
pub async fn live(world: Arc<World>, number: usize) {
    let network = world.network(number);
    let mut adversary = Adversary { number, network, begun: Vec::new(), next: 0, world };
    for asset in ASSETS {
        let amount = 50 + adversary.world.dice.below(100) as u128;
        adversary.world.deposit(adversary.account(), asset, amount);
    }
    while !adversary.world.is_calm() {
        sleep(adversary.world.dice.mostly_short(Duration::from_secs(5))).await;
        adversary.act().await;
    }
}

impl Adversary {
    fn account(&self) -> AccountId {
        self.world.owners[self.number].id()
    }

    async fn act(&mut self) {
        self.world.follow(&self.network);
        match self.world.dice.below(10) {
            0..=2 => self.begin_two().await,
            3 => self.begin(self.next, 1 + self.world.dice.below(10_000) as u128).await,
            4 => {
                let sequence = *self.world.dice.pick(&[self.next + 1, self.next.saturating_sub(1), 0, u64::MAX - 1]);
                self.begin(sequence, 1).await;
            }
            5 | 6 => self.go_on().await,
            7 => self.make_up().await,
            8 => self.replay().await,
            _ => self.forge().await,
        }
    }

    /// An order with this number, to any recipient.
    fn sign(&self, sequence: u64, amount: u128) -> TransferOrder {
        let dice = &self.world.dice;
        let (sender, sequence, amount) = (self.account(), SequenceNumber(sequence), Amount(amount));
        let (asset, mut memo) = (*dice.pick(&ASSETS), Memo::ZERO);
        memo.0[0] = u8::try_from(dice.below(4)).expect("few");
        let transfer: Transfer = if dice.chance(200) {
            let (recipient, fee) = (PrimaryAddress::repeat_byte(0x0e), Amount::ZERO);
            Redemption { sender, recipient, asset, amount, fee, sequence, memo }.into()
        } else if dice.chance(700) {
            // The first output is small, whatever the total.
            let output = |amount| Output { recipient: dice.pick(&self.world.owners).id(), amount, memo };
            let outputs = Outputs::new(vec![output(Amount(1)), output(amount), output(Amount(1))]);
            Payout { sender, asset, outputs: outputs.expect("small outputs"), sequence, memo }.into()
        } else {
            let recipient = dice.pick(&self.world.owners).id();
            Payment { sender, recipient, asset, amount, sequence, memo }.into()
        };
        let order = self.world.owners[self.number].sign(&self.world.domain, transfer);
        self.world.oracle().signs(&order);
        lock(&self.world.memory).order(order.clone());
        order
    }

    /// Signs two orders with one number and sends each to some authorities.
    async fn begin_two(&mut self) {
        for _ in 0..2 {
            self.begin(self.next, 1 + self.world.dice.below(40) as u128).await;
        }
        self.go_on().await;
    }

    async fn begin(&mut self, sequence: u64, amount: u128) {
        let order = self.sign(sequence, amount);
        self.world.trace.note("misbehaves", format_args!("adversary {} signs #{sequence} of {amount}", self.number));
        self.begun.push(Begun { order, votes: BTreeSet::new(), held: Vec::new() });
        self.ask(self.begun.len() - 1).await;
    }

    /// Continues with one of its newest orders.
    async fn go_on(&mut self) {
        let newest = self.begun.len().min(4);
        if newest > 0 {
            self.ask(self.begun.len() - 1 - self.world.dice.below(newest)).await;
        }
    }

    /// Asks some authorities to vote for an order, and makes certificates of the votes.
    async fn ask(&mut self, index: usize) {
        let order = self.begun[index].order.clone();
        let mut asked = JoinSet::new();
        for authority in self.some_authorities() {
            let order = order.clone();
            // Sometimes a shard to which the account does not belong.
            let stray = self.world.dice.chance(100).then(|| self.world.dice.pick(authority.shards()).clone());
            asked.spawn(async move {
                let sender = order.transfer.sender();
                stray.as_ref().unwrap_or(authority.shard_of(&sender)).order(&order).await
            });
        }
        while let Some(answer) = asked.join_next().await {
            if let Ok(Ok((epoch, vote))) = answer {
                self.hold(index, usize::try_from(epoch.0).unwrap_or(usize::MAX), vote);
            }
        }
        for epoch in 0..self.world.committees().len() {
            let world = self.world.clone();
            for authority in (0..world.plan.authorities()).filter(|one| world.misuses(*one, epoch)) {
                self.hold(index, epoch, byzantine::vote(&world, authority, epoch, &order));
            }
            if let Some(certificate) = self.certificate(index, epoch) {
                if order.transfer.sequence().0 == self.next {
                    self.next += 1;
                }
                self.confirm(certificate).await;
            }
        }
    }

    fn hold(&mut self, index: usize, epoch: usize, vote: Vote) {
        let begun = &mut self.begun[index];
        if begun.votes.insert((epoch, vote.authority.0.to_vec())) {
            begun.held.push((epoch, vote));
        }
    }

    fn votes(&self, index: usize, epoch: usize) -> Vec<VerifiedVote> {
        let begun = &self.begun[index];
        let committees = self.world.committees();
        let (Some(committee), Ok(order)) = (committees.get(epoch), begun.order.clone().verify(&self.world.domain))
        else {
            return Vec::new();
        };
        let of_epoch = begun.held.iter().filter(|(of, _)| *of == epoch);
        of_epoch
            .filter_map(|(_, vote)| vote.clone().verify(&self.world.domain, &committee.committee, &order).ok())
            .collect()
    }

    fn certificate(&self, index: usize, epoch: usize) -> Option<Certificate> {
        let committees = self.world.committees();
        let order = self.begun[index].order.clone().verify(&self.world.domain).ok()?;
        let certificate =
            Certificate::from_votes(&order, &committees.get(epoch)?.committee, &self.votes(index, epoch))?;
        Some(certificate.into_certificate())
    }

    /// Sends a certificate to some authorities only.
    async fn confirm(&self, certificate: Certificate) {
        lock(&self.world.memory).certificate(certificate.clone());
        let mut asked = JoinSet::new();
        for authority in self.some_authorities() {
            let certificate = certificate.clone();
            asked.spawn(async move {
                let sender = certificate.order.transfer.sender();
                authority.shard_of(&sender).confirm(&certificate).await
            });
        }
        while asked.join_next().await.is_some() {}
    }

    /// Forges a certificate: with too few votes, one vote many times, or votes for another order.
    async fn make_up(&mut self) {
        let dice = self.world.dice.clone();
        if self.begun.is_empty() {
            self.begin(self.next, 1).await;
        }
        let index = dice.below(self.begun.len());
        let epoch = self.world.committees().len() - 1;
        let quorum = self.network.committee().quorum();
        let mut votes: Vec<Vote> = self.votes(index, epoch).into_iter().map(|vote| vote.vote().clone()).collect();
        votes.sort_by_key(|vote| vote.authority);
        votes.truncate(quorum.saturating_sub(1));
        let mut order = self.begun[index].order.clone();
        match dice.below(4) {
            0 => {}
            1 => votes.extend(votes.last().cloned()),
            // The missing votes, in the names of others, with invalid signatures.
            2 => {
                let signer = self.world.plan.authorities() - 1;
                let names = self.network.committee().members().iter().map(|member| member.name).collect::<Vec<_>>();
                for name in names {
                    if votes.len() < quorum && votes.iter().all(|vote| vote.authority != name) {
                        let vote = byzantine::vote(&self.world, signer, epoch, &order);
                        votes.push(Vote { authority: name, ..vote });
                    }
                }
                votes.sort_by_key(|vote| vote.authority);
            }
            _ => order = self.sign(order.transfer.sequence().0, 99),
        }
        self.world.trace.note("misbehaves", format_args!("adversary {} makes up a certificate", self.number));
        self.confirm(Certificate { order, epoch: fastpay_core::Epoch(epoch as u64), votes }).await;
    }

    /// Replays messages of others.
    async fn replay(&mut self) {
        let (order, certificate) = {
            let memory = lock(&self.world.memory);
            let order = memory.orders().get(self.world.dice.below(memory.orders().len().max(1))).cloned();
            (order, memory.certificates().get(self.world.dice.below(memory.certificates().len().max(1))).cloned())
        };
        self.world.trace.note("misbehaves", format_args!("adversary {} replays", self.number));
        if let Some(certificate) = certificate {
            self.confirm(certificate).await;
        }
        if let Some(order) = order {
            for authority in self.some_authorities() {
                let sender = order.transfer.sender();
                let order = order.clone();
                tokio::spawn(async move { drop(authority.shard_of(&sender).order(&order).await) });
            }
        }
    }

    /// Signs for another account with its own key.
    async fn forge(&mut self) {
        let victim = self.world.dice.pick(&self.world.owners).id();
        let sequence = SequenceNumber(self.world.dice.below(4) as u64);
        let payment = Payment {
            sender: victim,
            recipient: self.account(),
            asset: *self.world.dice.pick(&ASSETS),
            amount: Amount(1),
            sequence,
            memo: Memo::ZERO,
        };
        // With its own key, or with the victim's signature of another transfer.
        let known = lock(&self.world.memory).orders().iter().rev().find(|one| one.transfer.sender() == victim).cloned();
        let own = self.world.owners[self.number].sign(&self.world.domain, payment.clone());
        let signed = known.filter(|_| self.world.dice.chance(500)).unwrap_or(own);
        let order = TransferOrder { transfer: payment.into(), authorization: signed.authorization };
        self.world
            .trace
            .note("misbehaves", format_args!("adversary {} signs for {}", self.number, self.world.name_of(&victim)));
        if victim != self.account() {
            self.begun.push(Begun { order, votes: BTreeSet::new(), held: Vec::new() });
            self.ask(self.begun.len() - 1).await;
        }
    }

    fn some_authorities(&self) -> Vec<AuthorityClient> {
        let all = self.network.authorities();
        self.world.dice.some_of(all.len()).into_iter().map(|index| all[index].clone()).collect()
    }
}
