//! The operator's page, and the data behind it.

use fastpay_testkit::payment;

use crate::http_scene::HttpServed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_loads_nothing_from_elsewhere_and_asks_what_is_served() {
    let served = HttpServed::start(1).await;
    let (page, script) = (served.get("/").await, served.get("/dashboard.js").await);
    for said in [&page, &script] {
        assert_eq!(said.status, 200);
        let policy = said.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert_eq!(said.header("x-content-type-options"), Some("nosniff"));
        assert!(!said.body.contains("://") && !said.body.contains("innerHTML"));
    }
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.body.contains("<script src=\"/dashboard.js\""));
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    // Every metric and every element that the script names is there.
    let metrics = served.get("/metrics").await.body;
    let words =
        |text: &str, separators: &[char]| -> Vec<String> { text.split(separators).map(str::to_owned).collect() };
    let named: Vec<_> = words(&script.body, &['"']).into_iter().filter(|word| word.starts_with("fastpay_")).collect();
    assert!(named.len() >= 5, "{named:?}");
    for name in named {
        assert!(metrics.lines().any(|line| line.starts_with(&name)), "{name} is not in {metrics}");
    }
    let ids = script.body.split("byId(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    ids.for_each(|id| assert!(page.body.contains(&format!("id=\"{id}\"")), "{id}"));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_say_who_votes_what_is_held_and_who_we_are() {
    let served = HttpServed::start(1).await;
    let shards = &served.shards;
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(0, 1));
    tokio::task::block_in_place(|| shards.deposit(&[(alice.id(), 100)]));
    let value = |text: &str, name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in {text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let peers = |text: &str| -> Vec<f64> {
        let peers = text.lines().filter(|line| line.starts_with("fastpay_peer_vote_timestamp_seconds{"));
        peers.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    };
    let before = served.get("/metrics").await.body;
    assert_eq!(peers(&before), [0.0; 4], "nobody was seen");
    assert!(before.contains(&format!("fastpay_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))), "{before}");
    let order = alice.sign(&shards.committee.domain, payment(alice.id(), bob.id(), 10, 0));
    tokio::task::block_in_place(|| (shards.vote(&order), shards.confirm(&shards.committee.certificate(&order))));
    let after = served.get("/metrics").await.body;
    let quorum = shards.committee.committee.quorum();
    assert_eq!(peers(&after).into_iter().filter(|seen| *seen > 1e9).count(), quorum, "{after}");
    let states = ["ready", "epoch", "voting", "restored", "asset_deposited{", "asset_held{", "asset_redeemed{"];
    let states = states.map(|name| value(&after, &format!("fastpay_{name}")));
    assert_eq!(states, [1.0, 0.0, 1.0, 0.0, 100.0, 100.0, 0.0]);
    assert_eq!(value(&after, "fastpay_assets_imbalanced"), 0.0);
    assert!(value(&after, "fastpay_checkpoint_timestamp_seconds") > 1e9);
    served.end().await;
}
