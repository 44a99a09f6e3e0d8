//! The conversations of `vectors/conversations.json`, which the SDK's tests play as well: what authorities say, in
//! order, what each answer means, and what a client concludes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{
    ClientError, Help, Helped, Inquiry, OrderConflict, PeerAnswer, PeerFailure, QuorumError, Room, Step, Tally,
    Verdict, agreed_balances, supported_balance,
};
use fastpay_core::{Amount, Asset, AuthorityName, Balance, Epoch, SequenceNumber, Transfer, TransferOrder, Vote};
use fastpay_rpc::{AccountState, Refusal};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption, test_domain};
use serde_json::{Value, json};

/// The number of the order.
const SEQUENCE: u64 = 2;

pub fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/conversations.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

struct Conversation<'a> {
    said: &'a Value,
    committee: TestCommittee,
    inquiry: Inquiry,
}

impl<'a> Conversation<'a> {
    fn new(said: &'a Value) -> Self {
        let size = said["authorities"].as_u64().unwrap_or(4) as usize;
        let epoch = Epoch(said["epoch"].as_u64().unwrap_or(0));
        let committee = TestCommittee::with(size, test_domain(), epoch);
        let order = order(said, "ours");
        let (domain, order) = (committee.domain, committee.verified(&order));
        let inquiry = Inquiry { domain, committee: Arc::new(committee.committee.clone()), order };
        Self { said, committee, inquiry }
    }

    fn name(&self, by: usize) -> AuthorityName {
        let is_renamed = self.said["renamed"].as_array().is_some_and(|renamed| renamed.contains(&json!(by)));
        if is_renamed { AuthorityName([by as u8 + 1; 32]) } else { self.committee.committee.members()[by].name }
    }

    fn answer(&self, says: &Value) -> Result<(Epoch, Vote), ClientError> {
        let by = says["by"].as_u64().unwrap() as usize;
        let number = |field: &str| says[field].as_u64().map(SequenceNumber);
        let ours = order(self.said, "ours");
        if let Some(vote) = says["vote"].as_str() {
            let vote = match vote {
                "own" => self.committee.vote(by, &ours),
                "of" => self.committee.vote(says["voter"].as_u64().unwrap() as usize, &ours),
                "forged" => self.committee.vote(by, &order(self.said, "rival")),
                other => panic!("{other}"),
            };
            return Ok((says["epoch"].as_u64().map_or(self.inquiry.committee.epoch(), Epoch), vote));
        }
        let Some(code) = says["refusal"].as_str() else {
            let is_rubbish = says["rubbish"] == json!(true);
            let silent = || ClientError::TimedOut(Duration::from_secs(5));
            return Err(if is_rubbish { ClientError::Malformed("rubbish".into()) } else { silent() });
        };
        let wait = Duration::from_millis(says["waitMs"].as_u64().unwrap_or(1));
        Err(ClientError::Refused(match code {
            "busy" => Refusal::Busy(wait),
            "stopping" => Refusal::Stopping,
            "disk-low" => Refusal::DiskLow(wait),
            "account-budget" => Refusal::AccountBudget(wait),
            "address-budget" => Refusal::AddressBudget(wait),
            "invalid" => Refusal::Invalid("it says".into()),
            "malformed" => Refusal::Malformed("it says".into()),
            "no-primary" => Refusal::NoPrimary,
            "not-voting" => Refusal::NotVoting(Epoch(says["epoch"].as_u64().unwrap())),
            "catching-up" => Refusal::CatchingUp(number("expected")),
            "already-confirmed" => Refusal::AlreadyConfirmed(SequenceNumber(SEQUENCE + 1)),
            "sequence-too-high" => Refusal::SequenceTooHigh(number("expected").unwrap()),
            "missing-certificate" => Refusal::MissingCertificate(number("expected").unwrap()),
            "insufficient-balance" => Refusal::InsufficientBalance(balance(&says["balance"])),
            "order-pending" => Refusal::OrderPending(Box::new(order(self.said, says["pending"].as_str().unwrap()))),
            other => panic!("{other}"),
        }))
    }

    /// What help comes to, by what the conversation says that there is.
    fn help(&self, help: &Help) -> Helped {
        match help {
            Help::Sent(from) if self.said["earlier"] == json!(false) => Helped::Failed(PeerFailure::Behind(*from)),
            Help::Sent(_) => Helped::Brought(1),
            Help::Received(_) => Helped::Brought(self.said["credits"].as_u64().unwrap_or(0) as usize),
            Help::Certificate => {
                let of = self.said["certificate"].as_str();
                Helped::Found(of.map(|of| Box::new(self.committee.certified(&order(self.said, of)))))
            }
        }
    }

    fn play(&self) -> Value {
        let mut tally = Tally::new(self.inquiry.committee.clone(), self.inquiry.order.clone());
        let is_patient = self.said["patient"] != json!(false);
        let mut over = BTreeSet::new();
        for says in self.said["says"].as_array().unwrap() {
            let by = says["by"].as_u64().unwrap() as usize;
            assert!(!over.contains(&by), "{} is not asked any more: {says}", self.name(by));
            let step = match self.inquiry.judge(self.name(by), self.answer(says), is_patient) {
                Step::Help(help) => {
                    let came = self.help(&help);
                    self.inquiry.helped(help, came)
                }
                step => Some(step),
            };
            let Some(Step::Count { answer, last }) = step else {
                assert_eq!(says["means"], "again", "{says}");
                continue;
            };
            let means = match &answer {
                PeerAnswer::Vote(_) => "vote",
                PeerAnswer::Finished(_) => "finished",
                PeerAnswer::Locked(_) => "locked",
                PeerAnswer::Ahead(_) => "ahead",
                PeerAnswer::Later(failure) | PeerAnswer::Out(failure) => failure.kind(),
            };
            assert_eq!(says["means"], means, "{says}");
            if last {
                over.insert(by);
            }
            match tally.count(self.name(by), answer) {
                Verdict::Wait => {}
                Verdict::Certified(certificate) => {
                    let by_votes = self.said["certificate"].is_null();
                    let voters = certificate.certificate().votes.iter().map(|vote| self.index(&vote.authority));
                    let voters: Vec<_> = voters.collect();
                    assert_eq!(certificate.digest(), self.inquiry.order.digest());
                    return if by_votes {
                        json!({"certified": "ours", "voters": voters})
                    } else {
                        json!({"certified": "ours"})
                    };
                }
                Verdict::Superseded(certificate) => {
                    assert_eq!(certificate.transfer(), &order(self.said, "rival").transfer);
                    return json!({"superseded": "rival"});
                }
                Verdict::NewEpoch(epoch) => return json!({"newEpoch": epoch.0}),
                Verdict::Impossible => return self.conclude(tally.error(false)),
            }
        }
        self.conclude(tally.error(true))
    }

    fn index(&self, name: &AuthorityName) -> usize {
        self.committee.committee.members().iter().position(|member| member.name == *name).unwrap()
    }

    fn conclude(&self, error: QuorumError) -> Value {
        match error {
            QuorumError::Conflict(conflict) => self.conflict(&conflict),
            QuorumError::InsufficientBalance { balance } => json!({"insufficientBalance": balance.to_string()}),
            QuorumError::NoRoom { whose, retry_after } => {
                let whose = match whose {
                    Room::Account => "account",
                    Room::Address => "address",
                    Room::Disk => "disk",
                };
                json!({"noRoom": whose, "retryAfterMs": retry_after.as_millis() as u64})
            }
            QuorumError::NoPrimary => json!({"noPrimary": true}),
            QuorumError::NoQuorum { count, timed_out, .. } => {
                json!({"noQuorum": {"votes": count, "timedOut": timed_out}})
            }
            other => panic!("{other}"),
        }
    }

    fn conflict(&self, conflict: &OrderConflict) -> Value {
        let which = |transfer: &Transfer| {
            ["ours", "rival"].into_iter().find(|which| order(self.said, which).transfer == *transfer).unwrap()
        };
        let holders = |wanted: &str| {
            let contenders = conflict.contenders();
            let holders = contenders.iter().filter(|contender| which(&contender.transfer) == wanted);
            let mut holders: Vec<_> = holders.flat_map(|order| &order.holders).map(|name| self.index(name)).collect();
            holders.sort_unstable();
            holders
        };
        let leader = conflict.leader().map(|order| which(order.transfer()));
        json!({"conflict": {"leader": leader, "ours": holders("ours"), "rival": holders("rival")}})
    }
}

/// One of the orders that a conversation speaks of.
fn order(said: &Value, which: &str) -> TransferOrder {
    let (alice, bob) = (TestAccount::numbered(0), TestAccount::numbered(1));
    let (sender, amount, sequence) = match which {
        "ours" | "forged" => (&alice, 30, SEQUENCE),
        "rival" => (&alice, 31, SEQUENCE),
        "earlier" => (&alice, 5, SEQUENCE - 1),
        "later" => (&alice, 5, SEQUENCE + 1),
        "stranger" => (&bob, 30, SEQUENCE),
        other => panic!("{other}"),
    };
    let transfer: Transfer = if said["kind"] == "redemption" {
        redemption(sender.id(), fastpay_core::PrimaryAddress::repeat_byte(9), amount, sequence).into()
    } else {
        payment(sender.id(), bob.id(), amount, sequence).into()
    };
    let order = sender.sign(&test_domain(), transfer);
    match (which, order.transfer) {
        // Under the signature of another amount.
        ("forged", Transfer::Payment(payment)) => TransferOrder {
            transfer: Transfer::Payment(fastpay_core::Payment { amount: Amount(29), ..payment }),
            ..order
        },
        (_, transfer) => TransferOrder { transfer, ..order },
    }
}

fn balance(text: &Value) -> Balance {
    let number: i128 = text.as_str().unwrap().parse().unwrap();
    let amount = Amount(number.unsigned_abs());
    if number < 0 { Balance::ZERO.debit(amount) } else { Balance::from(amount) }
}

#[test]
fn every_conversation_about_an_order_ends_as_it_should() {
    let vectors = vectors();
    let orders = vectors["orders"].as_array().unwrap();
    assert!(orders.len() >= 40);
    for said in orders {
        assert_eq!(Conversation::new(said).play(), said["concludes"], "{}", said["name"]);
    }
}

#[test]
fn balances_amount_to_what_an_honest_authority_says() {
    let vectors = vectors();
    for said in vectors["balances"].as_array().unwrap() {
        let state = |state: &Value| AccountState {
            next_sequence: SequenceNumber(state["next"].as_u64().unwrap()),
            holdings: match balance(&state["balance"]) {
                Balance::ZERO => Vec::new(),
                balance => vec![(Asset::ETHER, balance)],
            },
            ..AccountState::default()
        };
        let states: Vec<_> = said["states"].as_array().unwrap().iter().map(state).collect();
        let states: Vec<_> = states.iter().collect();
        let trusted = said["trusted"].as_u64().unwrap() as usize;
        let agreed = agreed_balances(&states, trusted);
        let agreed = agreed.first().map(|agreed| json!({"balance": agreed.balance, "agreeing": agreed.agreeing}));
        assert_eq!(json!(agreed), said["agreed"], "{}", said["name"]);
        let Some(next) = said["next"].as_u64().map(SequenceNumber) else { continue };
        let spent = |sequence: SequenceNumber| {
            let amount = said["spent"][sequence.to_string()].as_str()?.parse().unwrap();
            Some((Asset::ETHER, Amount(amount)))
        };
        let supported = supported_balance(&states, next, Asset::ETHER, trusted, spent);
        assert_eq!(json!(supported.map(|balance| balance.to_string())), said["supported"], "{}", said["name"]);
    }
}
