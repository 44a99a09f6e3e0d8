//! What the operator's commands take from several Ethereum nodes, of which one lags or lies.

use fastpay_node::authority::config::Config;
use fastpay_node::operator::committee::{CommitteeError, State, announce, sign, status};
use fastpay_testkit::anvil::{LyingNode, Rotation};
use serde_json::{Value, json};

use crate::committee::signers;
use crate::replacing::{DAY, Files, SENDER, TERMS};

/// A second Ethereum node, which may lie.
fn with_liar(files: &mut Files) -> LyingNode {
    let liar = LyingNode::start(&files.scene.anvil.url());
    files.scene.config.ethereum_mut().unwrap().rpc_urls.push(liar.url());
    liar
}

/// The clock of its newest block is fast.
fn is_fast(liar: &LyingNode, seconds: u64) {
    liar.lie(move |method, params, answer| {
        if method == "eth_getBlockByNumber" && params[0] == "latest" {
            let time = u64::from_str_radix(&answer["result"]["timestamp"].as_str().unwrap()[2..], 16).unwrap();
            answer["result"]["timestamp"] = json!(format!("0x{:x}", time + seconds));
        }
    });
}

/// It says that there are so many blocks more. The last one is the newest one under another number.
fn is_ahead(node: &LyingNode, blocks: u64) {
    let mut newest = Value::Null;
    node.lie(move |method, params, answer| {
        if method == "eth_getLogs" && answer["error"].is_object() {
            *answer = json!({ "jsonrpc": "2.0", "id": answer["id"], "result": [] });
        }
        if method != "eth_getBlockByNumber" {
            return;
        }
        if params[0] == "latest" {
            let number = u64::from_str_radix(&answer["result"]["number"].as_str().unwrap()[2..], 16).unwrap();
            answer["result"]["number"] = json!(format!("0x{:x}", number + blocks));
            newest = answer["result"].clone();
        } else if answer["result"].is_null() {
            answer["result"] = newest.clone();
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_node_alone_decides_on_the_time() {
    let mut files = Files::new().await;
    let liar = with_liar(&mut files);
    is_fast(&liar, 20 * DAY);
    let error = files.propose(&TERMS).await.unwrap_err();
    assert!(matches!(error, CommitteeError::Disagreement { .. }), "{error}");
    assert!(!files.next.exists());
    // One that is fast by less than nodes usually differ makes no deadline timely, and none late.
    is_fast(&liar, 200);
    let proposed = files.propose(&TERMS).await.unwrap().1;
    let text = std::fs::read_to_string(&files.next).unwrap();
    let now = files.scene.anvil.time_s().await;
    assert!(proposed.deadline <= now + DAY, "{now}: {proposed}");
    for deadline in [now + 100, now + 30 * DAY + 100] {
        let other =
            files.scene.write("other.json", &text.replace(&proposed.deadline.to_string(), &deadline.to_string()));
        let error = sign(&files.scene.config, &files.scene.now.keys, &other, &files.proofs).await.unwrap_err();
        assert!(matches!(error, CommitteeError::Deadline(of) if of == deadline), "{error}");
    }
    let there = files.announce(&files.signed_by(&[0, 1, 2]).await).await.unwrap();
    files.scene.anvil.pass(there.lapses_at.unwrap() - files.scene.anvil.time_s().await - 100).await;
    assert_eq!(files.status(&[]).await.announcements[0].state, State::Installable);
    files.scene.anvil.pass(101).await;
    assert_eq!(files.status(&[]).await.announcements[0].state, State::Lapsed);
    assert_eq!(files.sent(SENDER).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acceptances_of_a_block_that_is_too_old_do_not_count_and_the_newest_quorum_does() {
    let mut files = Files::new().await;
    files.scene.config.endpoints = Some(files.scene.path("endpoints.json"));
    files.announced().await;
    let block = files.install(&[]).await.unwrap().matured_block.unwrap();
    files.scene.follow_to(block).await;
    let keep = |accepted: Vec<std::path::PathBuf>, name: &str| -> Vec<_> {
        let kept = |(number, from)| {
            let to = files.scene.path(&format!("{name}-{number}.json"));
            std::fs::copy(from, &to).unwrap();
            to
        };
        accepted.iter().enumerate().map(kept).collect()
    };
    let old = keep(files.accepted_by(&[0, 1, 2, 3], None).await, "old");
    files.scene.anvil.mine(10).await;
    let newer = files.scene.anvil.block_number().await;
    files.scene.follow_to(newer).await;
    let three = keep(files.accepted_by(&[0, 1, 2], Some(newer)).await, "newer");
    let named = async |votes: &[std::path::PathBuf]| {
        let there = files.status(votes).await.announcements.remove(0);
        (there.accepted_block, there.accepted_by.len(), there.next)
    };
    let (at, by, next) = named(&[&old[..], &three].concat()).await;
    assert_eq!((at, by), (Some(newer), 3), "{next}");
    assert_eq!(named(&[&old[..], &three[..2]].concat()).await.0, Some(block));
    assert_eq!(named(&[&old[..1], &three[..2]].concat()).await.0, Some(newer));

    files.scene.anvil.mine(8_190).await;
    let (at, by, next) = named(&old).await;
    assert!(at.is_none() && by == 0 && next.contains("with a newer final block"), "{next}");
    let error = files.accept(0, None).await.unwrap_err();
    assert!(matches!(error, CommitteeError::BlockForgotten(of) if of == block), "{error}");
    let newest = files.scene.anvil.block_number().await;
    files.scene.follow_to(newest).await;
    let two = keep(files.accepted_by(&[0, 1], Some(newest)).await, "newest");
    let (at, by, next) = named(&[&old[..], &two].concat()).await;
    assert_eq!((at, by), (Some(newest), 2), "{next}");
    assert!(next.contains(&format!("1 more of its members accept it once block {newest} is final")), "{next}");
    let all = files.accepted_by(&[0, 1, 2], Some(newest)).await;
    files.scene.anvil.mine(1).await;
    assert_eq!(files.install(&[&old[..], &all].concat()).await.unwrap().state, State::Installed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_that_one_node_invents_is_waited_for_only_where_nothing_else_is_known_and_not_for_ever() {
    let mut files = Files::new().await;
    let liar = with_liar(&mut files);
    files.propose(&TERMS).await.unwrap();
    let votes = files.signed_by(&[0, 1, 2]).await;
    is_ahead(&liar, 16_000_000);
    let patience = crate::scene::PATIENCE;
    // What was sent is final where it is.
    let there = tokio::time::timeout(patience, files.announce(&votes)).await.unwrap().unwrap();
    assert_eq!(there.state, State::Announced);
    // Nobody knows in which block somebody else announced it.
    let (seen, mut told) = tokio::sync::mpsc::unbounded_channel();
    let mut tell = |line: String| seen.send(line).unwrap();
    let what = files.announcing(&[]);
    let again = announce(&files.scene.config, files.payer(SENDER), &what, &mut tell);
    let later = async {
        let line = told.recv().await.unwrap();
        for _ in 0..19 {
            files.scene.anvil.pass(200).await;
        }
        line
    };
    let both = async { tokio::join!(again, later) };
    let (outcome, line) = tokio::time::timeout(patience, both).await.unwrap();
    let error = outcome.unwrap_err();
    let honest = files.scene.node.url().origin().ascii_serialization();
    assert!(matches!(&error, CommitteeError::NotSettled { node, .. } if *node == honest), "{error}");
    assert!(line.contains("waiting until block 160000") && line.contains(&honest), "{line}");
    assert!(told.try_recv().is_err(), "it is told once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_invents_or_leaves_out_does_not_change_what_is_announced() {
    let mut files = Files::new().await;
    let id = files.announced().await;
    // Another announcement of the same shape, whose event a node shows and the contract does not know.
    let rotation = Rotation::new(
        files.scene.now.domain.contract(),
        signers(&files.scene.now),
        signers(&files.scene.now.rotated_to(5)),
        files.scene.anvil.time_s().await + DAY,
    );
    let snapshot: Value = files.scene.anvil.request("evm_snapshot", json!([])).await;
    let receipt = files.scene.anvil.call_as_guardian(rotation.announce()).await;
    let invented = receipt["logs"][0].clone();
    let _: Value = files.scene.anvil.request("evm_revert", json!([snapshot])).await;
    let liar = with_liar(&mut files);
    liar.lie_about_logs(move |logs| *logs = vec![invented.clone()]);
    let shown = async |config: &Config| {
        let report = status(config, None, &[]).await.unwrap();
        report.announcements.iter().map(|there| (there.id, there.signed_by.len())).collect::<Vec<_>>()
    };
    assert_eq!(shown(&files.scene.config).await, [(id, 3)]);
    files.scene.config.ethereum_mut().unwrap().rpc_urls.reverse();
    assert_eq!(shown(&files.scene.config).await, [(id, 3)]);
    // The first node lags: its newest block is before the announcement.
    liar.lie(|method, params, answer| {
        if method == "eth_getBlockByNumber" && params[0] == "latest" {
            answer["result"]["number"] = json!("0x3");
        }
    });
    assert_eq!(shown(&files.scene.config).await, [(id, 3)]);
    // No node has the transaction any more.
    for node in [&files.scene.node, &liar] {
        node.lie(|method, _, answer| {
            if method == "eth_getTransactionByHash" {
                answer["result"] = Value::Null;
            }
        });
    }
    let report = status(&files.scene.config, None, &[]).await.unwrap().to_string();
    assert!(report.contains("signed by a quorum (not all votes are readable here)"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_refuses_many_blocks_at_a_time_is_asked_in_parts() {
    let files = Files::new().await;
    let id = files.announced().await;
    files.scene.node.lie(|method, params, answer| {
        let block = |name: &str| u64::from_str_radix(&params[0][name].as_str().unwrap()[2..], 16).unwrap();
        if method == "eth_getLogs" && block("toBlock") > block("fromBlock") + 1 {
            *answer = json!({ "jsonrpc": "2.0", "id": answer["id"], "error": { "code": -32005, "message": "range" } });
        }
    });
    let report = status(&files.scene.config, None, &[]).await.unwrap();
    assert_eq!(report.announcements.iter().map(|there| there.id).collect::<Vec<_>>(), [id]);
}
