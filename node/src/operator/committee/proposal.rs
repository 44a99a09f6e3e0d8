//! How far an announcement has come, and the next step.

use std::fmt;

use fastpay_core::{
    Announcement, Authority, AuthorityName, Committees, CouncilStatement, Digest, Epoch, PrimaryAddress,
};
use fastpay_ethereum::{Clock, RANGE_BLOCKS_DEFAULT, utc};
use serde::Serialize;

use super::council::{Council, Facts};
use super::describe::{checkpoint, role};
use super::nodes::{Heads, Nodes};
use super::votes::{Acceptances, acceptances, valid, verified, voters, voters_in};
use super::{CommitteeError, VoteFile};

/// What has happened to a proposed committee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is not on the contract yet.
    Proposed,
    /// It is announced, and its delay has not passed.
    Announced,
    /// Its delay has passed.
    Installable,
    /// It has matured: its members can accept.
    Matured,
    /// Its epoch has begun.
    Installed,
    /// It was not announced, or not installed, in time.
    Lapsed,
    /// Another committee was installed, or a quorum ended the recovery.
    Ended,
}

/// An announcement with its state. All times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The digest by which the contract knows it.
    pub id: Digest,
    /// The epoch that it would begin.
    pub epoch: Epoch,
    /// Its state in the newest block.
    pub state: State,
    /// What to do next.
    pub next: String,
    /// Its members, in the order of their names.
    pub members: Vec<Authority>,
    /// Its guardian; zero for nobody.
    pub guardian: PrimaryAddress,
    /// Its recovery address; zero for nobody.
    pub recovery: PrimaryAddress,
    /// The first epoch whose keys were out; its own epoch if none were.
    pub compromised_since: Epoch,
    /// The checkpoint that it names; zero for none.
    pub checkpoint: Digest,
    /// The time by which it has to be announced.
    pub deadline: u64,
    /// Whether the recovery address announced it.
    pub is_recovery: bool,
    /// When it was announced.
    pub announced_at: Option<u64>,
    /// When the guardian endorsed it.
    pub endorsed_at: Option<u64>,
    /// The time from which it can mature and be installed.
    pub installable_at: Option<u64>,
    /// The time after which it cannot.
    pub lapses_at: Option<u64>,
    /// The block in which it matured.
    pub matured_block: Option<u64>,
    /// The members of the current committee that signed it, as far as the files or the chain show.
    pub signed_by: Vec<AuthorityName>,
    /// The number of them that is needed; `None` if the committee that signs is not known.
    pub signatures_needed: Option<usize>,
    /// The block that most of the acceptances in the files name.
    pub accepted_block: Option<u64>,
    /// The members of the announced committee whose acceptances are in the files, and name that block.
    pub accepted_by: Vec<AuthorityName>,
    /// The number of them that is needed.
    pub acceptances_needed: usize,
    /// Of each file whose vote does not count, the authority that it names: of another statement, block or key.
    pub ignored: Vec<AuthorityName>,
    /// The guardian and the recovery address in the newest block.
    #[serde(skip)]
    roles_now: (PrimaryAddress, PrimaryAddress),
    /// Whether acceptances name the block in which it matured, or a later one: on a ledger none is named.
    #[serde(skip)]
    names_blocks: bool,
}

impl Proposal {
    /// Reads the state of an announcement. `votes` are the members' files, of both kinds; `packed` those with which it was
    /// announced, if they are known.
    pub(super) async fn read(
        council: &Council,
        announcement: &Announcement,
        committees: &Committees,
        (votes, packed): (&[VoteFile], Option<&[u8]>),
    ) -> Result<Self, CommitteeError> {
        let id = council.domain().council_digest(&CouncilStatement::Announcement(announcement));
        let Announcement { committee, guardian, recovery, compromised_since, checkpoint, deadline } = announcement;
        let Facts { clock, state, accepted, roles, is_forgotten } = council.facts(announcement, votes).await?;
        // Those who decide on it are the members of the epoch before.
        let before = committee.epoch().0.checked_sub(1).and_then(|before| committees.get(Epoch(before)));
        if before.is_none() && clock.is_none() {
            return Err(CommitteeError::Epoch { current: committees.current().epoch(), found: committee.epoch() });
        }
        let mut signed_by = Vec::new();
        if let Some(before) = before {
            signed_by = voters(&valid(before, id, votes));
            signed_by.extend(packed.map(|packed| voters_in(before, id, packed)).unwrap_or_default());
            signed_by.sort_unstable();
            signed_by.dedup();
        }
        let matured_block = clock.and_then(|clock| clock.matured_block);
        let names_blocks = matches!(council, Council::Contract(_));
        let accepted_by = voters(&accepted.votes);
        let counts = |vote: &VoteFile| {
            before.is_some_and(|before| verified(before, id, vote).is_some())
                || verified(committee, accepted.digest, vote).is_some()
        };
        let ignored = votes.iter().filter(|vote| !counts(vote)).map(|vote| vote.authority).collect();
        let mut proposal = Self {
            id,
            epoch: committee.epoch(),
            state,
            next: String::new(),
            members: committee.members().to_vec(),
            guardian: *guardian,
            recovery: *recovery,
            compromised_since: *compromised_since,
            checkpoint: *checkpoint,
            deadline: *deadline,
            is_recovery: clock.is_some_and(|clock| clock.is_recovery),
            announced_at: clock.map(|clock| clock.announced_at),
            endorsed_at: clock.and_then(|clock| clock.endorsed_at),
            installable_at: clock.map(|clock| clock.installable_at),
            lapses_at: clock.map(|clock| clock.lapses_at),
            matured_block,
            signatures_needed: before.map(|before| before.quorum()),
            accepted_block: Some(accepted.block).filter(|_| names_blocks && !accepted_by.is_empty()),
            acceptances_needed: committee.quorum(),
            ignored,
            signed_by,
            accepted_by,
            roles_now: roles,
            names_blocks,
        };
        proposal.next = proposal.next_step(is_forgotten);
        Ok(proposal)
    }

    /// Checks that the announcement is on the contract and can still be installed.
    pub(super) fn check_open(&self) -> Result<(), CommitteeError> {
        match (self.state, self.lapses_at) {
            (State::Proposed, _) => Err(CommitteeError::NotAnnounced(self.id)),
            (State::Lapsed, None) => Err(CommitteeError::Deadline(self.deadline)),
            (State::Lapsed, Some(at)) => Err(CommitteeError::Lapsed(at)),
            (State::Ended, _) => Err(CommitteeError::Ended(self.id)),
            (State::Announced | State::Installable | State::Matured | State::Installed, _) => Ok(()),
        }
    }

    fn next_step(&self, is_forgotten: bool) -> String {
        let guardian_now = self.roles_now.0;
        let Self { signed_by, signatures_needed, accepted_by, acceptances_needed, .. } = self;
        let (signed, accepted) = (signed_by.len(), accepted_by.len());
        match self.state {
            State::Proposed if self.names_blocks && self.compromised_since == Epoch(0) && signed == 0 => {
                "a quorum signs it (`committee sign`); or the recovery address announces it, if the committee has been silent \
                 for 120 days (`committee announce --recovery`)"
                    .into()
            }
            State::Proposed if signatures_needed.is_some_and(|needed| signed < needed) => format!(
                "{} more members of the current committee sign it (`committee sign`)",
                signatures_needed.unwrap_or_default().saturating_sub(signed)
            ),
            State::Proposed => format!("announce it by {} (`committee announce`)", utc(self.deadline)),
            State::Announced if self.endorsed_at.is_none() && !self.is_recovery && !guardian_now.is_zero() => format!(
                "the guardian {guardian_now} endorses it (`committee endorse`); without that, wait until {}",
                self.installable_at.map(utc).unwrap_or_default()
            ),
            State::Announced => {
                format!("wait until {}, then `committee install`", self.installable_at.map(utc).unwrap_or_default())
            }
            State::Installable => "anyone records that its delay has passed (`committee install`)".into(),
            State::Matured if accepted < *acceptances_needed => format!(
                "{} more of its members accept it {}, by {}",
                acceptances_needed - accepted,
                match self.accepted_block.or(self.matured_block.filter(|_| !is_forgotten)) {
                    Some(block) if self.matured_block == Some(block) => {
                        format!("once block {block} is final (`committee accept`)")
                    }
                    Some(block) => format!("once block {block} is final (`committee accept --block {block}`)"),
                    None if !self.names_blocks => "(`committee accept`)".into(),
                    None => "with a newer final block, all with the same one (`committee accept --block`)".into(),
                },
                self.lapses_at.map(utc).unwrap_or_default()
            ),
            State::Matured => "install it (`committee install`)".into(),
            State::Installed if self.compromised_since < self.epoch => {
                "its members rebuild and adopt a checkpoint (`fastpay-node recover`, `committee adopt`), as docs/OPERATIONS.md \
                 says under \"When the committee is lost\""
                    .into()
            }
            State::Installed => "its members' nodes vote once they have joined (`fastpay-node join`)".into(),
            State::Lapsed | State::Ended => "propose anew (`committee propose`), if it is still wanted".into(),
        }
    }
}

/// How far an announcement has come on a contract, with the acceptances among `votes`.
pub(super) async fn facts(
    nodes: &Nodes,
    announcement: &Announcement,
    votes: &[VoteFile],
) -> Result<Facts, CommitteeError> {
    let id = nodes.domain().council_digest(&CouncilStatement::Announcement(announcement));
    let (clock, heads) = (nodes.clock_of(id).await?, nodes.heads().await?);
    let state = state(nodes, announcement, clock.as_ref(), heads).await?;
    let matured = clock.and_then(|clock| clock.matured_block);
    let accepted = match matured {
        Some(matured) => acceptances(nodes, announcement, matured, votes).await?,
        None => Acceptances::default(),
    };
    let is_forgotten = matured.is_some_and(|block| heads.forgot(block));
    Ok(Facts { clock, state, accepted, roles: nodes.roles().await?, is_forgotten })
}

/// The state in the newest block.
async fn state(
    nodes: &Nodes,
    announcement: &Announcement,
    clock: Option<&Clock>,
    heads: Heads,
) -> Result<State, CommitteeError> {
    let (current, now) = (nodes.epoch().await?, heads.earliest);
    let Some(clock) = clock else {
        let is_late = now > announcement.deadline;
        let has_ended = current >= announcement.committee.epoch();
        return Ok(if has_ended {
            State::Ended
        } else if is_late {
            State::Lapsed
        } else {
            State::Proposed
        });
    };
    if current >= announcement.committee.epoch() {
        let is_it = match clock.matured_block {
            Some(matured) => is_installed(nodes, announcement, current, matured).await?,
            None => false,
        };
        return Ok(if is_it { State::Installed } else { State::Ended });
    }
    let sign_of_life = nodes.agree_soon(async |node| node.last_sign_of_life().await).await?;
    Ok(match clock.matured_block {
        _ if now > clock.lapses_at => State::Lapsed,
        _ if !clock.is_open(current, sign_of_life, now) => State::Ended,
        Some(_) => State::Matured,
        None if now >= clock.installable_at => State::Installable,
        None => State::Announced,
    })
}

/// Whether this announcement, which matured in the block `matured`, was installed, according to every node. The event of
/// the installation leaves out the recovery address, which counts while its epoch lasts.
async fn is_installed(
    nodes: &Nodes,
    announcement: &Announcement,
    current: Epoch,
    matured: u64,
) -> Result<bool, CommitteeError> {
    let Announcement { committee, guardian, recovery, compromised_since, checkpoint, .. } = announcement;
    let epoch = committee.epoch();
    let installed = nodes.agree_soon(async |node| node.committee(epoch).await).await?;
    if installed != *committee || (current == epoch && nodes.roles().await? != (*guardian, *recovery)) {
        return Ok(false);
    }
    let (mut first, head) = (matured, nodes.heads().await?.lowest);
    while first <= head {
        let last = first.saturating_add(RANGE_BLOCKS_DEFAULT - 1).min(head);
        if let Some(event) = nodes.agree_soon(async |node| node.installed(epoch, first, last).await).await? {
            let said = (event.guardian, Epoch(event.compromisedSince), event.checkpoint);
            return Ok(said == (*guardian, *compromised_since, *checkpoint));
        }
        first = last.saturating_add(1);
    }
    Err(CommitteeError::NoInstallation(epoch))
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_recovery { "recovery" } else { "announcement" };
        let state = match self.state {
            State::Proposed => "not announced yet",
            State::Announced => "announced",
            State::Installable => "announced, and its delay has passed",
            State::Matured => "announced and matured",
            State::Installed => "installed",
            State::Lapsed => "lapsed",
            State::Ended => "ended",
        };
        writeln!(f, "{kind} {} of epoch {}: {state}", self.id, self.epoch)?;
        if self.compromised_since < self.epoch {
            writeln!(f, "  keys are compromised since epoch {}", self.compromised_since)?;
        }
        let of = |names: &[AuthorityName], needed: usize| {
            let all: Vec<_> = names.iter().map(ToString::to_string).collect();
            format!("{} of {needed} needed{}{}", all.len(), if all.is_empty() { "" } else { ": " }, all.join(", "))
        };
        match self.signatures_needed {
            _ if self.is_recovery => {}
            Some(needed) if self.announced_at.is_none() || self.signed_by.len() >= needed => {
                writeln!(f, "  signed by {}", of(&self.signed_by, needed))?;
            }
            // The contract has counted them.
            _ => writeln!(f, "  signed by a quorum (not all votes are readable here)")?,
        }
        if let Some(at) = self.announced_at {
            let endorsed = self.endorsed_at.map_or("not endorsed".to_owned(), |at| format!("endorsed {}", utc(at)));
            let endorsed = if self.is_recovery { String::new() } else { format!(", {endorsed}") };
            writeln!(f, "  announced {}{endorsed}", utc(at))?;
        }
        if let (Some(from), Some(until)) = (self.installable_at, self.lapses_at) {
            writeln!(f, "  can be installed from {} until {}", utc(from), utc(until))?;
        }
        if let Some(block) = self.matured_block {
            let named = self.accepted_block.unwrap_or(block);
            writeln!(
                f,
                "  matured in block {block}; accepted with block {named} by {}",
                of(&self.accepted_by, self.acceptances_needed)
            )?;
        }
        if !self.names_blocks && matches!(self.state, State::Matured | State::Installed) {
            writeln!(f, "  matured; accepted by {}", of(&self.accepted_by, self.acceptances_needed))?;
        }
        writeln!(f, "  {}", role("guardian", self.guardian, self.roles_now.0))?;
        writeln!(f, "  {}", role("recovery", self.recovery, self.roles_now.1))?;
        writeln!(f, "  {}", checkpoint(self.checkpoint))?;
        writeln!(f, "  to be announced by {}", utc(self.deadline))?;
        for member in &self.members {
            writeln!(f, "  member {}  {}", member.name, member.redemption_key)?;
        }
        for name in &self.ignored {
            writeln!(f, "  a vote of {name} does not count: of another statement, block or key")?;
        }
        write!(f, "  next: {}", self.next)
    }
}
