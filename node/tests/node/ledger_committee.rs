//! The operators of a committee on a ledger replace a member, step by step, with the commands that they have on a contract;
//! the members are whole nodes, and the ledger's rules and certificates are real.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_core::{AccountKey, AuthorityKeys, Epoch};
use fastpay_ethereum::PrivateKeySigner;
use fastpay_ledger_client::scripted::{PARAMETERS, ScriptedLedger};
use fastpay_ledger_statement::{Action, Time};
use fastpay_node::authority::config::Config;
use fastpay_node::operator::committee::{
    Announce, CommitteeError, Payer, Proposal, State, Terms, accept, announce, endorse, heartbeat, install, propose,
    prove, sign, status,
};
use fastpay_node::operator::{join, leave};
use fastpay_program::Clock;
use fastpay_testkit::{TestAccount, TestCommittee, authority_keys, payment, test_domain};

use crate::authority::Running;
use crate::certification::{A_WEEK, configure};
use crate::checkpoint::{Scene, followed};
use crate::rebase::shard_of;
use crate::scene::{PATIENCE, eventually_async};

/// Who comes, and the number of the member that leaves.
const NEWCOMER: usize = 4;
const LEAVER: usize = 3;

fn bank() -> AccountKey {
    AccountKey::ed25519([1; 32])
}

fn payer() -> Payer {
    let key = PrivateKeySigner::from_slice(&[9; 32]).unwrap();
    Payer { key, max_fee_cap_gwei: 0 }
}

fn terms() -> Terms {
    Terms { guardian: None, recovery: None, compromised_since: None, checkpoint: Default::default(), days: 7 }
}

struct Operators {
    ledger: ScriptedLedger,
    scene: Scene,
    next: TestCommittee,
}

impl Operators {
    async fn new() -> Self {
        let minutes_ago = Time(Clock::system().now_ms() - 300_000);
        // Keys that nobody else knows: those of most tests are refused.
        let first: Vec<_> = (5_001..).take(4).map(authority_keys).collect();
        let first = TestCommittee::of(first, test_domain(), Epoch(0));
        let ledger = ScriptedLedger::start(&first.committee, &bank(), minutes_ago).await;
        let mut scene = Scene::on_ledger(&ledger, first.keys, &[1, 2, 1, 1]);
        let mut keys: Vec<AuthorityKeys> = scene.committee.keys.clone();
        keys[LEAVER] = authority_keys(5_099);
        let next = TestCommittee::of(keys, scene.committee.domain, Epoch(1));
        let base = Config { observer: true, ..scene.members[0].config.clone() };
        scene.members.push(scene.operator(NEWCOMER, authority_keys(5_099), 1, &base));
        configure(&mut scene, A_WEEK);
        for member in &mut scene.members[..NEWCOMER] {
            member.running = Some(Running::ready(member.config.clone(), member.keys.clone()).await);
        }
        let newcomer = &mut scene.members[NEWCOMER];
        newcomer.running = Some(Running::begin(newcomer.config.clone(), vec![newcomer.keys.clone()]));
        Self { ledger, scene, next }
    }

    fn config(&self, member: usize) -> &Config {
        &self.scene.members[member].config
    }

    fn write(&self, name: String, value: &impl serde::Serialize) -> PathBuf {
        let path = self.scene.path(&name);
        std::fs::write(&path, serde_json::to_vec(value).unwrap()).unwrap();
        path
    }

    fn proofs(&self) -> Vec<PathBuf> {
        let keys = self.next.keys.iter().enumerate();
        keys.map(|(at, keys)| self.write(format!("proof-{at}"), &prove(self.config(0), keys).unwrap())).collect()
    }

    /// The signatures of these members of the committee before.
    async fn signed(&self, file: &Path, members: &[usize]) -> Vec<PathBuf> {
        let mut votes = Vec::new();
        for member in members {
            let keys = &self.scene.members[*member].keys;
            let ballot = sign(self.config(*member), std::slice::from_ref(keys), file, &self.proofs()).await.unwrap();
            votes.push(self.write(format!("vote-{member}"), &ballot.vote));
        }
        votes
    }

    async fn accepted(&self, file: &Path, members: &[usize]) -> Vec<PathBuf> {
        let mut votes = Vec::new();
        for member in members {
            let keys = std::slice::from_ref(&self.scene.members[*member].keys);
            let ballot = accept(self.config(*member), keys, file, &self.proofs(), None).await.unwrap();
            votes.push(self.write(format!("acceptance-{member}"), &ballot.vote));
        }
        votes
    }

    async fn announced(&self, file: &Path, votes: &[PathBuf]) -> Result<Proposal, CommitteeError> {
        let proofs = self.proofs();
        let what = Announce { announcement: file, proofs: &proofs, votes, is_recovery: false };
        announce(self.config(0), payer(), &what, &mut |_| ()).await
    }

    async fn installed(&self, file: &Path, votes: &[PathBuf]) -> Result<Proposal, CommitteeError> {
        install(self.config(1), payer(), (file, votes), &mut |_| ()).await
    }

    /// The ledger's time passes, and the committee hears of it.
    fn wait(&self, ms: u64) {
        self.ledger.history().wait(ms);
        self.ledger.history().fund(&bank(), &[(TestAccount::numbered(9).id(), 1)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_replaced_on_a_ledger_and_the_new_one_joins() {
    let operators = Operators::new().await;
    let (domain, owners) = (operators.scene.committee.domain, [0, 1].map(TestAccount::numbered));
    operators.ledger.history().fund(&bank(), &[(owners[0].id(), 100)]);
    followed(&operators.scene.members, 1).await;
    operators.scene.pay(&[0, 1, 2, LEAVER], 0, 1, 0).await;

    let file = operators.scene.path("next.json");
    let (text, proposed) = propose(operators.config(0), &operators.proofs(), &terms(), &file).await.unwrap();
    assert!(text.contains("committee 0 on the ledger") && text.contains("1 of 4 authorities join"), "{text}");
    assert_eq!((proposed.state, proposed.signatures_needed), (State::Proposed, Some(3)));
    let recovery = Terms { recovery: Some(fastpay_core::PrimaryAddress::repeat_byte(5)), ..terms() };
    let refused = propose(operators.config(0), &operators.proofs(), &recovery, &operators.scene.path("other")).await;
    assert!(matches!(refused, Err(CommitteeError::NotOnLedger("a recovery address"))));

    // A quorum signs, and anyone announces it, once.
    let votes = operators.signed(&file, &[0, 1, 2]).await;
    let missing = operators.announced(&file, &votes[..2]).await.unwrap_err();
    assert!(matches!(missing, CommitteeError::TooFewVotes { found: 2, needed: 3, .. }), "{missing}");
    for _ in 0..2 {
        assert_eq!(operators.announced(&file, &votes).await.unwrap().state, State::Announced);
    }
    let report = status(operators.config(2), None, &[]).await.unwrap();
    assert_eq!((report.announcements.len(), report.announcements[0].id, report.council), (1, proposed.id, None));
    let nobody = endorse(operators.config(0), payer(), (&file, Some(proposed.id)), &mut |_| ()).await.unwrap_err();
    assert!(matches!(nobody, CommitteeError::WrongSender { role: "guardian", .. }), "{nobody}");
    let early = operators.installed(&file, &[]).await.unwrap_err();
    assert!(matches!(early, CommitteeError::TooEarly { is_endorsed: false, .. }), "{early}");
    let keys = std::slice::from_ref(&operators.scene.members[0].keys);
    let unripe = accept(operators.config(0), keys, &file, &operators.proofs(), None).await.unwrap_err();
    assert!(matches!(unripe, CommitteeError::NotMatured(_)), "{unripe}");
    let block = accept(operators.config(0), keys, &file, &operators.proofs(), Some(7)).await.unwrap_err();
    assert!(matches!(block, CommitteeError::NotOnLedger("--block")), "{block}");
    let life = heartbeat(operators.config(0), keys, 7).await.unwrap_err();
    assert!(matches!(life, CommitteeError::NotOnLedger(_)), "{life}");

    // Its delay passes, and it matures; its members accept, with the newcomer, and it is installed.
    operators.wait(PARAMETERS.announced_delay_ms);
    let matured = operators.installed(&file, &[]).await.unwrap();
    assert_eq!((matured.state, matured.accepted_by.len()), (State::Matured, 0));
    let votes = operators.accepted(&file, &[0, 1, NEWCOMER]).await;
    let shown = status(operators.config(0), Some(&file), &votes[..2]).await.unwrap();
    assert!(shown.announcements[0].next.contains("1 more of its members accept it"), "{shown}");
    assert_eq!(operators.installed(&file, &votes[..2]).await.unwrap().state, State::Matured);
    for _ in 0..2 {
        let installed = operators.installed(&file, &votes).await.unwrap();
        assert!(installed.state == State::Installed && installed.to_string().contains("installed"), "{installed}");
    }
    let again = operators.ledger.history().act(&bank(), Action::Open);
    assert!(again.is_err(), "the reserve is open");

    // The newcomer joins with the Closings of the others, and its vote counts.
    let joined = join::join(operators.config(NEWCOMER), PATIENCE, &mut |_| ()).await.unwrap();
    assert!(joined.votes && joined.epoch == Epoch(1), "{joined}");
    let order = owners[0].sign(&domain, payment(owners[0].id(), owners[1].id(), 5, 1));
    let newcomer = shard_of(&operators.scene.members[NEWCOMER], &owners[0].id());
    let (epoch, vote) = newcomer.order(&order).await.unwrap();
    assert_eq!((epoch, vote.authority), (Epoch(1), authority_keys(5_099).public().name));
    let certificate = operators.next.certificate(&order);
    for member in &operators.scene.members {
        let shard = shard_of(member, &owners[0].id());
        eventually_async("it is confirmed", async || shard.confirm(&certificate).await.is_ok()).await;
    }
    // The member that left may be stopped.
    let left = leave::leave(operators.config(LEAVER), Duration::from_secs(60), &mut |_| ()).await.unwrap();
    assert!(left.may_stop, "{left}");
    let mut scene = operators.scene;
    scene.stop().await;
}
