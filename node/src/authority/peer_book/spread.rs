//! Tells the other authorities where this one is, and asks them where others are.

use std::time::Duration;

use fastpay_client::{Asked, AuthorityClient, ClientOptions};
use fastpay_core::{MemberEndpoint, SignedEndpoint};
use fastpay_program::{Clock, until_stopped};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::{Entry, PeerBook, PeerReader};
use crate::authority::voter_status::{VoterStatus, VoterStatusWatch};

/// How often peers are asked, and how long they are waited for.
#[derive(Clone, Copy, Debug)]
pub struct SpreadTimes {
    /// The pause between rounds once all is known everywhere.
    pub poll: Duration,
    /// The first pause before that. It doubles up to `poll`, and begins anew with each committee.
    pub retry: Duration,
    /// The shortest pause between writes of what members told.
    pub keep: Duration,
    /// The maximum time for a call to a peer.
    pub call: Duration,
}

impl Default for SpreadTimes {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(60),
            retry: Duration::from_secs(2),
            keep: Duration::from_secs(1),
            call: Duration::from_secs(5),
        }
    }
}

/// See the [module](self).
pub struct Spread {
    book: PeerBook,
    voter_status: VoterStatusWatch,
    reader: PeerReader,
    peers: Vec<AuthorityClient>,
    times: SpreadTimes,
    clock: Clock,
}

impl Spread {
    /// The part that fills this book. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(book: PeerBook, voter_status: VoterStatusWatch, times: SpreadTimes) -> Self {
        let reader = book.reader(ClientOptions { connect_timeout: times.call, request_timeout: times.call });
        Self { book, voter_status, reader, peers: Vec::new(), times, clock: Clock::system() }
    }

    /// Runs until `stop` turns true.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        until_stopped(stop, self.spread()).await;
    }

    async fn spread(&mut self) {
        let mut wait = self.times.retry;
        loop {
            let status = self.voter_status.borrow_and_update().clone();
            let pause = if self.round(&status).await { self.times.poll } else { wait };
            wait = wait.saturating_mul(2).min(self.times.poll);
            let _ = timeout(pause, self.keep_what_comes(&status)).await;
            if self.voter_status.borrow().epoch() != status.epoch() {
                wait = self.times.retry;
            }
        }
    }

    /// Keeps what members tell meanwhile, until there is another committee: whoever told it may be gone after a restart.
    async fn keep_what_comes(&mut self, status: &VoterStatus) {
        loop {
            tokio::select! {
                biased;
                Ok(()) = self.voter_status.changed() => return,
                () = self.reader.changed() => {}
            }
            self.book.keep(status.committees());
            // A member that tells something new all the time must not keep the disk busy.
            sleep(self.times.keep).await;
        }
    }

    /// Asks all peers once. Returns whether every peer that answered knows where this member is, and this one where all
    /// members are.
    async fn round(&mut self, status: &VoterStatus) -> bool {
        self.reader.update(&mut self.peers, AuthorityClient::name, |client| client);
        let own = self.sign_own(status);
        let mut asked = Asked::each(&self.peers, |peer| {
            let own = own.clone();
            async move { peer.endpoints(own.as_ref()).await }
        });
        let (mut is_settled, deadline) = (true, Instant::now() + self.times.call);
        while let Some((peer, answer)) = asked.next(deadline).await {
            match answer {
                Ok(endpoints) => {
                    is_settled &= own.as_ref().is_none_or(|own| endpoints.contains(own));
                    is_settled &= self.book.learn(endpoints, status.committees());
                }
                Err(error) => tracing::debug!(%peer, %error, "a peer cannot be asked now where members are"),
            }
        }
        // Another committee may have been installed meanwhile, whose members have told where they are.
        let now = self.voter_status.borrow().clone();
        self.book.keep(now.committees());
        let members = status.committees().current().members();
        is_settled && members.iter().all(|member| self.book.knows(&member.name))
    }

    /// Where this authority is, signed with its key of the current committee, if it is a member and its endpoints file
    /// lists it. The number is the time in seconds, or the one after a number that an earlier run has given.
    pub(super) fn sign_own(&self, status: &VoterStatus) -> Option<SignedEndpoint> {
        let (keys, own) = (status.member_keys()?, self.book.shared.own.clone()?);
        let name = keys.public().name;
        let mut told = self.book.told();
        let before = told.own_before.get(&name).copied().unwrap_or_default();
        if let Some(known) = told.by_name.get(&name).filter(|known| known.number() > before) {
            return Some(known.endpoint.signed().clone());
        }
        let number = (self.clock.now_ms() / 1_000).max(before.saturating_add(1));
        let domain = &self.book.shared.domain;
        let signed = MemberEndpoint { number, ..own }.sign(keys, domain);
        let verified = signed.and_then(|signed| signed.verify(domain, status.committees()));
        let verified = verified.inspect_err(|error| tracing::error!(%error, "nobody is told where this authority is"));
        let verified = verified.ok()?;
        let signed = verified.signed().clone();
        told.by_name.insert(name, Entry::now(verified));
        told.is_kept = false;
        Some(signed)
    }
}
