//! What the services ask.

use fastpay_core::Digest;
use fastpay_ledger_statement::{AnswerProof, ReadProof};
use tokio::sync::oneshot;

use super::{Host, HostError, WAITERS_MAX};
use crate::command::{Command, Status};
use crate::pool::Added;

impl Host {
    pub(super) fn carry_out(&mut self, command: Command) -> Result<(), HostError> {
        match command {
            Command::Submit { request, is_relayed, answer, reply } => {
                let digest = request.digest();
                let is_awaited = answer.is_none_or(|answer| self.add_waiter(digest, answer));
                let added =
                    if is_awaited { self.pool.add_request(request.clone(), self.clock.now_ms()) } else { Added::Busy };
                if added == Added::New && !is_relayed {
                    self.relay.pass_on(&request);
                }
                let _ = reply.send(added);
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
                let _ = reply.send(self.lie.about_groups(groups));
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
                let leader = self.chain.leaders().first().copied().map(index).unwrap_or_default();
                let head = self.chain.head().map(|(header, certificate)| (*header, certificate.clone()));
                let _ = reply.send(Status { member: index(self.me.0), head, leader, votes: self.votes });
            }
            Command::Checkpoint(reply) => {
                let _ = reply.send(self.chain.checkpoint());
            }
        }
        Ok(())
    }

    /// Passes on what has waited for long, so that no member alone knows it.
    pub(super) fn pass_on_again(&mut self) {
        for request in self.pool.due_again(self.clock.now_ms()) {
            self.relay.pass_on(&request);
        }
    }

    pub(super) fn add_waiter(&mut self, request: Digest, waiter: oneshot::Sender<AnswerProof>) -> bool {
        if self.waiters.len() >= WAITERS_MAX {
            self.waiters.retain(|_, waiters| {
                waiters.retain(|waiter| !waiter.is_closed());
                !waiters.is_empty()
            });
        }
        let has_room = self.waiters.len() < WAITERS_MAX;
        if has_room {
            let waiters = self.waiters.entry(request).or_default();
            waiters.retain(|waiter| !waiter.is_closed());
            waiters.push(waiter);
        }
        has_room
    }
}
