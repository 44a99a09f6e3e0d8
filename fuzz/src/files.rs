//! Files that programs keep for themselves and read again, perhaps after a disk, a crash or a person has changed them.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use alloy::primitives::U256;
use fastpay_core::{AccountId, Asset, Committees, Digest, PrimaryAddress, SequenceNumber, Transfer};
use fastpay_ethereum::{Attempt, Call, Fees, Submission};
use fastpay_node::authority::rollback::VoteFloors;
use fastpay_relayer::{
    Bundle, Decision, Left, OpenUnlock, PendingRedemption, State, Totals, UnlockStep, UnlockStepKind, Unlocks,
};
use fastpay_wallet::folder::{Errand, Folder, KnownCommittees, OrderState, TransactionState};
use serde_json::json;

use crate::signed::SIGNED;
use crate::tagged;

/// A folder of this thread, in memory if the system has a file system there.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self(made.unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and replaces an existing one of this name.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

thread_local! {
    static SCRATCH: Scratch = Scratch::new();
}

/// The address from which the wallet sends transactions.
const OWNER_ON_PRIMARY: PrimaryAddress = PrimaryAddress::repeat_byte(7);
const CONTRACT: PrimaryAddress = PrimaryAddress::repeat_byte(0xFA);

/// The account whose orders are read.
fn owner() -> AccountId {
    SIGNED.orders[0].transfer.sender()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The path of the wallet's file that the first byte of an input selects.
fn wallet_file(tag: u8) -> Option<String> {
    let account = hexadecimal(&owner().0);
    let number = format!("{:020}", 0);
    Some(match tag {
        0 => format!("orders/{account}/{number}.order"),
        1 => format!("orders/{account}/{number}.certificate"),
        2 => format!("orders/{account}/{number}.settled"),
        3 => format!("inbox/{account}/{account}-0.payment"),
        4 => "committees.json".into(),
        5 => "assets.json".into(),
        6 => format!("primary/{}/{number}.transaction", hexadecimal(OWNER_ON_PRIMARY.as_slice())),
        7 => format!("primary/{}/{number}.outcome", hexadecimal(OWNER_ON_PRIMARY.as_slice())),
        _ => return None,
    })
}

/// The first byte selects which file the other bytes are. The wallet's other files are valid.
pub fn run(bytes: &[u8]) {
    let Some((tag, bytes)) = bytes.split_first() else { return };
    SCRATCH.with(|scratch| match tag % 10 {
        8 => {
            let path = scratch.put("relayer/state.json", bytes);
            if let Ok(state) = State::read(path.parent().unwrap()) {
                let (items, queued) = state.counts();
                assert_eq!(items + queued, state.items.len());
                scratch.put("relayer/state.json", &serde_json::to_vec(&state).unwrap());
                assert_eq!(State::read(path.parent().unwrap()).unwrap(), state);
            }
        }
        9 => {
            let path = scratch.put("node/floors", bytes);
            drop(VoteFloors::open(path.parent().unwrap()).unwrap());
            // The first opening drops the damaged records, so that from then on the file is whole.
            drop(VoteFloors::open(path.parent().unwrap()).unwrap());
        }
        tag => {
            for (other, content) in SOUND_FILES.iter() {
                scratch.put(&wallet_file(*other).unwrap(), content);
            }
            scratch.put(&wallet_file(tag).unwrap(), bytes);
            read_wallet(&Folder::new(scratch.path()));
        }
    });
}

/// Reads all files of the wallet, and checks that no altered order or certificate is valid.
fn read_wallet(folder: &Folder) {
    let orders = folder.orders(owner());
    for entry in orders.entries().into_iter().chain(orders.unfinished()).flatten() {
        let _ = entry.transfer();
        entry.order.into_iter().for_each(|order| SIGNED.check_order(order));
        entry.certificate.into_iter().for_each(|certificate| SIGNED.check_certificate(certificate));
    }
    let _ = orders.next_sequence().unwrap();
    let inbox = folder.inbox(owner());
    for received in inbox.payments().into_iter().flatten() {
        if let Ok(Some(certificate)) = inbox.certificate(&received.name()) {
            SIGNED.check_certificate(certificate);
        }
    }
    if let Ok(Some(known)) = folder.known_committees() {
        folder.learn_committees(&known).unwrap();
        assert_eq!(folder.known_committees().unwrap(), Some(known));
    }
    for asset in folder.known_assets().into_iter().flatten() {
        let _ = folder.known_asset(asset);
    }
    let transactions = folder.transactions(OWNER_ON_PRIMARY);
    let _ = (transactions.entries(), transactions.pending());
}

/// A transaction that the wallet or the relayer sent.
fn submission() -> Submission {
    let call = Call::claim(CONTRACT, Asset::ETHER, CONTRACT, U256::from(1));
    let fees = Fees { max_fee_per_gas: 9, max_priority_fee_per_gas: 1 };
    let attempts = vec![Attempt { hash: Digest::repeat_byte(1), fees }];
    Submission { call, from: OWNER_ON_PRIMARY, nonce: 3, gas_limit: 100_000, attempts }
}

/// A state of the relayer in the middle of its work.
fn relayer_state() -> State {
    let certificate = &SIGNED.certificates[1];
    let verified = certificate.clone().verify(&SIGNED.committee.domain, &SIGNED.committee.committee).unwrap();
    let item =
        PendingRedemption::new(&verified, &SIGNED.committee.committee, 5).expect("the second order is a redemption");
    let (account, sequence) = (owner(), SequenceNumber(4));
    let step = UnlockStep { account, sequence, kind: UnlockStepKind::Request };
    let bundle = Bundle { submission: submission(), items: vec![item.id()], unlock: Some(step) };
    let open = OpenUnlock {
        account,
        sequence,
        voidable_from: 5,
        is_ours: true,
        is_below: Some(false),
        tries: 1,
        next_at_ms: 2,
        waits_for: "3 vote".into(),
    };
    let left = Left { item: item.id(), reason: "it reverted".into(), transaction: Some(Digest::repeat_byte(2)) };
    State {
        version: 1,
        chain_id: SIGNED.committee.domain.chain_id(),
        contract: SIGNED.committee.domain.contract(),
        first_committee: Some(SIGNED.committee.committee.members().to_vec()),
        address: Some(OWNER_ON_PRIMARY),
        cursors: [(SIGNED.committee.committee.members()[0].name, vec![1, 2])].into(),
        items: vec![item],
        bundles: vec![bundle],
        free_nonces: vec![2],
        left: vec![left],
        payees: [(CONTRACT, 115_000)].into(),
        unlock: Unlocks { cursor: None, open: vec![open], day: 20_000, spent_wei: U256::from(3) },
        totals: Totals::default(),
        decision: Decision::default(),
        paused_until: Some(7),
    }
}

/// The wallet's files, all valid.
static SOUND_FILES: LazyLock<Vec<(u8, Vec<u8>)>> = LazyLock::new(sound_files);

fn sound_files() -> Vec<(u8, Vec<u8>)> {
    let signed = &*SIGNED;
    let (order, certificate) = (&signed.orders[0], &signed.certificates[0]);
    let digest = signed.committee.domain.transfer_digest(&order.transfer);
    let certified = hexadecimal(&borsh::to_vec(certificate).unwrap());
    let payment = match &order.transfer {
        Transfer::Payment(payment) => payment.clone(),
        Transfer::Redemption(_) | Transfer::Payout(_) => unreachable!("the first order is a payment"),
    };
    let committees = Committees::new(signed.committee.committee.clone()).unwrap();
    let known = KnownCommittees::new(&signed.committee.domain, committees);
    let values = [
        json!({ "created_at_ms": 1, "digest": digest, "transfer": order.transfer,
            "order": hexadecimal(&borsh::to_vec(order).unwrap()) }),
        json!({ "certified_at_ms": 2, "digest": digest, "certificate": certified }),
        json!({ "settled_at_ms": 3 }),
        json!({ "receivedAtMs": 4, "payment": payment, "certificate": certified }),
        json!(known),
        json!({ "0x0000000000000000000000000000000000000000": { "symbol": "ETH", "decimals": 18 } }),
        json!({ "created_at_ms": 5, "errand": Errand::Claim {
                owner: PrimaryAddress::repeat_byte(7), asset: Asset::ETHER, to: PrimaryAddress::repeat_byte(8), amount: U256::from(9),
            },
            "submission": submission() }),
        json!(TransactionState::Reverted),
    ];
    (0..).zip(values).map(|(tag, value)| (tag, value.to_string().into_bytes())).collect()
}

/// Writes and reads all seeds: a target that rejects its own seeds would find nothing.
pub fn read_seeds(home: &Path) {
    for (tag, content) in SOUND_FILES.iter() {
        let path = home.join(wallet_file(*tag).unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let folder = Folder::new(home);
    let entry = folder.orders(owner()).entries().unwrap().pop().unwrap();
    assert!(entry.certificate.is_some() && entry.state == OrderState::Settled, "{entry:?}");
    assert_eq!(folder.inbox(owner()).payments().unwrap().len(), 1);
    assert!(folder.known_committees().unwrap().is_some() && folder.known_assets().unwrap().len() == 1);
    assert_eq!(folder.transactions(OWNER_ON_PRIMARY).entries().unwrap()[0].state, TransactionState::Reverted);
    std::fs::write(home.join("state.json"), serde_json::to_vec(&relayer_state()).unwrap()).unwrap();
    State::read(home).unwrap();
}

/// One valid file of each kind.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<_> = SOUND_FILES.iter().map(|(tag, content)| tagged(*tag, content)).collect();
    seeds.push(tagged(8, &serde_json::to_vec(&relayer_state()).unwrap()));
    seeds.push(tagged(9, &[0; 88]));
    seeds
}
