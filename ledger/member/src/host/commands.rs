//! What the services ask.

use fastpay_core::Digest;
use fastpay_ledger_statement::{ReadProof, VerifiedRequest, Wire};

use super::{Host, HostError, PRUNE_INTERVAL_MS, WAITERS_MAX};
use crate::command::{Command, Status, Waiter};
use crate::pool::Added;

impl Host {
    pub(super) fn carry_out(&mut self, command: Command) -> Result<(), HostError> {
        match command {
            Command::Submit { requests, is_relayed, waiter, reply } => {
                let submit = |request| self.submit(request, is_relayed, waiter.as_ref());
                let _ = reply.send(requests.into_iter().map(submit).collect());
            }
            Command::Read(key, reply) => {
                let proof = self.chain.head().map(|(header, certificate)| ReadProof {
                    header: *header,
                    certificate: certificate.clone(),
                    proof: self.chain.state().prove(&key),
                });
                let _ = reply.send(proof);
            }
            Command::Groups(to, from, reply) => {
                let groups = self.store.groups(to, from)?;
                let _ = reply.send(self.lie.about_groups(&self.keys, groups));
            }
            Command::Due(cluster, reply) => {
                let _ = reply.send(self.pool.due_from(cluster, self.chain.state()));
            }
            Command::Group(group) => {
                self.pool.add_group(*group, self.chain.state(), self.clock.now_ms());
            }
            Command::Status(reply) => {
                let members = self.chain.members();
                let index = |key| members.index(&key).unwrap_or_default();
                let leader = index(self.chain.leader());
                let head = self.chain.head().map(|(header, certificate)| (*header, certificate.clone()));
                let _ = reply.send(Status { member: index(self.me.0), head, leader, votes: self.votes });
            }
            Command::Checkpoint(reply) => {
                let _ = reply.send(self.chain.checkpoint());
            }
        }
        Ok(())
    }

    fn submit(&mut self, request: VerifiedRequest, is_relayed: bool, waiter: Option<&Waiter>) -> Added {
        let digest = request.digest();
        if waiter.is_some() && !self.has_room_for_waiter(&digest) {
            return Added::Busy;
        }
        let encoded = (!is_relayed).then(|| request.request().encode());
        let added = self.pool.add_request(&request, self.clock.now_ms());
        if let (Added::New, Some(encoded)) = (added, encoded) {
            self.relay.pass_on_to(self.chain.leader(), encoded);
        }
        if let (Added::New | Added::Known, Some(waiter)) = (added, waiter) {
            self.add_waiter(digest, waiter);
        }
        added
    }

    /// Passes on what has waited for long, so that no member alone knows it.
    pub(super) fn pass_on_again(&mut self) {
        for request in self.pool.due_again(self.clock.now_ms()) {
            self.relay.pass_on(&request);
        }
    }

    fn has_room_for_waiter(&mut self, request: &Digest) -> bool {
        let has_room = |host: &Self| host.waiters.len() < WAITERS_MAX || host.waiters.contains_key(request);
        let now_ms = self.clock.now_ms();
        if !has_room(self) && now_ms.saturating_sub(self.waiters_pruned_ms) >= PRUNE_INTERVAL_MS {
            self.waiters_pruned_ms = now_ms;
            self.waiters.retain(|_, waiters| {
                waiters.retain(|waiter| !waiter.answers.is_closed());
                !waiters.is_empty()
            });
        }
        has_room(self)
    }

    /// A request that does not wait has no waiter: nobody would ever answer and remove it.
    fn add_waiter(&mut self, request: Digest, waiter: &Waiter) {
        let waiters = self.waiters.entry(request).or_default();
        waiters.retain(|other| !other.answers.is_closed() && other.id != waiter.id);
        waiters.push(waiter.clone());
    }
}
