//! The groups for a FastPay committee, as its authorities read them, from members that are processes.

use fastpay_core::{AccountId, Amount, Asset};
use fastpay_ledger_client::{Client, GroupReader};
use fastpay_ledger_statement::{
    Action, ClusterId, CommitteeNumber, Cursor, EventKind, Message, Outcome, Receiver, Time,
};

use super::{ledger, writer};

/// Reads on until the amounts that accounts were funded with are these, and gives the position and the newest time.
async fn read(reader: &mut GroupReader, mut due: Cursor, expected: &[u128]) -> (Cursor, Time) {
    let (mut amounts, mut time) = (Vec::new(), Time(0));
    while amounts.len() < expected.len() {
        for group in reader.next(due).await.unwrap() {
            assert!(group.time() > time);
            (due, time) = (group.cursor(), group.time());
            for message in &group.group().messages {
                let Message::Event(event) = message else { panic!("{message:?}") };
                let EventKind::Funded(funding) = &event.kind else { panic!("{event:?}") };
                amounts.push(funding.amount.0);
            }
        }
    }
    assert_eq!(amounts, expected);
    (due, time)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_committee_hears_of_its_funds_whatever_one_member_hands_over_and_after_all_were_killed() {
    for lie in ["groups", "withholding"] {
        let (_folder, mut net) = ledger(&[], &[1]);
        net.start(1, 0, Some(lie)).unwrap();
        net.start_and_wait().await.unwrap();
        let client: Client = net.client();
        let fund = async |amount| {
            let (committee, account) = (CommitteeNumber(0), AccountId([5; 32]));
            let fund = Action::Fund { committee, account, asset: Asset::ETHER, amount: Amount(amount) };
            client.instruct(&writer(), ClusterId(1), None, &fund).await.unwrap()
        };
        client.instruct(&writer(), ClusterId(1), None, &Action::Open).await.unwrap();
        let mut reader = GroupReader::new(&client, Receiver::Committee(CommitteeNumber(0))).unwrap();
        for amount in [1, 2, 3] {
            assert_eq!(fund(amount).await, Outcome::Funding);
        }
        let (due, time) = read(&mut reader, Cursor::default(), &[1, 2, 3]).await;
        net.kill_cluster(1);
        net.start_and_wait().await.unwrap();
        fund(4).await;
        let (_, later) = read(&mut reader, due, &[4]).await;
        assert!(later > time, "{lie}");
        // One that begins anew reads all of it again.
        let mut again = GroupReader::new(&client, Receiver::Committee(CommitteeNumber(0))).unwrap();
        read(&mut again, Cursor::default(), &[1, 2, 3, 4]).await;
    }
}
