//! Without disk space for new locks none is given, and pending payments can still be finished.

use std::num::NonZeroU64;
use std::sync::Arc;

use fastpay_core::{Epoch, Request, SequenceNumber, ShardId, TransferOrder};
use fastpay_node::authority::shard::{Address, Answer, ClientReputation, ShardLimits, address_budgets, recover_on};
use fastpay_node::authority::storage::{Journal, JournalOptions};
use fastpay_rpc::Refusal;
use fastpay_testkit::{MemoryDisk, TestAccount, payment, redemption};

use crate::scene::{FORGETFUL, Shards, eventually, folders, layout, storage};

const RESERVE: u64 = 20_000;

fn on_disk(disk: &MemoryDisk, folder: &tempfile::TempDir, limits: ShardLimits) -> Shards {
    let folders = folders(folder.path(), ShardId(0));
    if disk.paths().is_empty() {
        Journal::create_on(Arc::new(disk.clone()), &folders.journal, JournalOptions::default()).unwrap();
    }
    let shard = recover_on(storage(disk, &folders), ShardId(0), layout(1), true, &limits).unwrap();
    Shards::with(vec![shard], folder.path(), layout(1), limits)
}

fn pay(shards: &Shards, owner: &TestAccount, to: &TestAccount, sequence: u64) -> TransferOrder {
    owner.sign(&shards.committee.domain, payment(owner.id(), to.id(), 1, sequence))
}

fn refused_locks(shards: &Shards, reason: &str) -> bool {
    let counter = format!("fastpay_locks_refused_total{{shard=\"0\",reason=\"{reason}\"}} ");
    let text = shards.metrics.text();
    let count = text.lines().find_map(|line| line.strip_prefix(&counter)).expect("it is counted");
    count.parse::<u64>().unwrap() > 0
}

fn address(text: &str) -> Arc<ClientReputation> {
    Arc::new(ClientReputation::at(Address::from(text.parse::<std::net::IpAddr>().unwrap())))
}

#[test]
fn what_is_under_way_finds_the_reserve_that_new_orders_leave() {
    for limits in [ShardLimits::default(), FORGETFUL] {
        let (disk, folder) = (MemoryDisk::new(), tempfile::tempdir().unwrap());
        let limits = ShardLimits { disk_reserve_bytes: RESERVE, ..limits };
        disk.set_bytes_free(Some(RESERVE as usize + 16_000));
        let shards = on_disk(&disk, &folder, limits).run();
        let owners: Vec<_> = (0..60).map(TestAccount::numbered).collect();
        shards.deposit(&owners.iter().map(|owner| (owner.id(), 100)).collect::<Vec<_>>());
        // Votes until the reserve is touched: and no further, whatever is asked for.
        let full = |number: usize| shards.order(&pay(&shards, &owners[number], &owners[0], 0));
        let voted = (0..60).take_while(|number| matches!(full(*number), Answer::Vote(..))).count();
        assert!((3..58).contains(&voted), "{voted}");
        for number in voted..60 {
            let Answer::Refused(refusal @ Refusal::DiskLow(wait)) = full(number) else { panic!("{number}") };
            assert!(refusal.is_retryable() && !wait.is_zero(), "{refusal}");
        }
        let left = fastpay_program::disk::Disk::free_bytes(&disk, folder.path()).unwrap();
        assert!((RESERVE - 2_000..=RESERVE).contains(&left), "{left} bytes are left");
        assert!(refused_locks(&shards, "disk"));
        // Other refusals are what they were.
        let late = pay(&shards, &owners[58], &owners[0], 3);
        assert_eq!(shards.refusal(&late), Refusal::SequenceTooHigh(SequenceNumber(0)));
        // The lock that it gave it says again, confirms the certificate, and those of others and of redemptions.
        shards.vote(&pay(&shards, &owners[1], &owners[0], 0));
        let (locked, fresh) = (pay(&shards, &owners[1], &owners[0], 0), pay(&shards, &owners[59], &owners[0], 0));
        let redeemed = redemption(owners[58].id(), [0xBE; 20].into(), 10, 0);
        let redeemed = owners[58].sign(&shards.committee.domain, redeemed);
        for order in [locked, fresh, redeemed] {
            let certificate = shards.committee.certificate(&order);
            assert_eq!(shards.confirm(&certificate), Answer::Confirmed(Epoch(0), SequenceNumber(1)));
        }
        shards.deposit(&[(owners[2].id(), 5)]);

        // Room is made, and it votes again without a restart.
        disk.set_bytes_free(None);
        eventually("it votes again", || {
            matches!(shards.order(&pay(&shards, &owners[57], &owners[0], 0)), Answer::Vote(..))
        });
        assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));
    }
}

#[test]
fn an_account_that_has_filled_its_budget_gets_no_new_lock_and_ends_what_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let budget = NonZeroU64::new(20_000).unwrap();
    let limits = ShardLimits { account_journal_bytes_per_day: budget, ..FORGETFUL };
    let shards = Shards::start(folder.path(), 1, limits);
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(0, 1));
    shards.deposit(&[(alice.id(), 1_000), (bob.id(), 1_000)]);
    let mut sequence = 0;
    let wait = loop {
        let order = pay(&shards, &alice, &bob, sequence);
        match shards.order(&order) {
            Answer::Vote(..) => sequence += 1,
            Answer::Refused(Refusal::AccountBudget(wait)) => break wait,
            other => panic!("{other:?}"),
        }
        // The vote that it has is no new lock.
        shards.vote(&order);
        assert_eq!(
            shards.confirm(&shards.committee.certificate(&order)),
            Answer::Confirmed(Epoch(0), SequenceNumber(sequence))
        );
        assert!(sequence < 100, "20,000 bytes are less than 100 payments");
    };
    assert!(sequence > 10 && !wait.is_zero(), "{sequence}");
    assert!(refused_locks(&shards, "account-budget"));
    // The others' votes make the certificate, which is confirmed; and others pay, also to it.
    let order = pay(&shards, &alice, &bob, sequence);
    shards.confirm(&shards.committee.certificate(&order));
    assert_eq!(shards.account(&alice.id()).next_sequence(), SequenceNumber(sequence + 1));
    shards.pay(&pay(&shards, &bob, &alice, 0));
    assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));
}

#[test]
fn an_address_has_one_budget_for_all_accounts_shards_and_connections() {
    let folder = tempfile::tempdir().unwrap();
    let mut shards = Shards::prepare(folder.path(), 2, FORGETFUL);
    shards.addresses = address_budgets(NonZeroU64::new(20_000).unwrap());
    let shards = shards.run();
    let owners: Vec<_> = (0..60).map(|rank| shards.account_in(rank as u32 % 2, rank)).collect();
    shards.deposit(&owners.iter().map(|owner| (owner.id(), 100)).collect::<Vec<_>>());
    let payee = shards.account_in(0, 99);
    let ask = |peer: &Arc<ClientReputation>, owner: &TestAccount| {
        let order = pay(&shards, owner, &payee, 0);
        let certificate = Request::Certificate(shards.committee.certificate(&order));
        let [answer] = &shards.submit_as(peer, vec![Request::Order(order)])[..] else { panic!("one answer") };
        let confirmed = shards.submit_as(peer, vec![certificate]);
        assert!(matches!(confirmed[..], [Answer::Confirmed(..)]), "{confirmed:?}");
        answer.clone()
    };
    // Each comes over a connection of its own, and from another network of one site.
    let network = |number: usize| address(&format!("2001:db8:7:{number:x}::1"));
    let answers: Vec<_> = owners[..58].iter().enumerate().map(|(number, owner)| ask(&network(number), owner)).collect();
    let voted = answers.iter().take_while(|answer| matches!(answer, Answer::Vote(..))).count();
    assert!((10..50).contains(&voted), "{voted}");
    for answer in &answers[voted..] {
        let Answer::Refused(refusal @ Refusal::AddressBudget(wait)) = answer else { panic!("{answer:?}") };
        assert!(refusal.is_retryable() && !wait.is_zero(), "{refusal}");
    }
    assert!(refused_locks(&shards, "address-budget"));
    for owner in &owners[58..] {
        assert!(matches!(ask(&address("10.0.0.2"), owner), Answer::Vote(..)), "another address");
    }
    assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));
}
