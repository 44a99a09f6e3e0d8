//! What running nodes have pruned, read by everybody who reads: programs over HTTP, wallets, the audit, and the SDK.

use std::process::Command;

use fastpay_core::AccountId;
use fastpay_e2e::{Authority, CHAIN_ID, Network, PATIENCE, User, http_get, run, wait_for};
use serde_json::{Value, json};

/// Prints the history of an account that paid once, and of the account that it paid, by the SDK.
const BY_SDK: &str = r#"
import { createPublicClient, http } from "viem";
import { foundry } from "viem/chains";
import { FastPay, memoryStore, parseAccount } from "./sdk/index.js";

const { rpc, contract, chainId, authorities, sender, recipient } = JSON.parse(process.argv[2]);
const publicClient = createPublicClient({ chain: foundry, transport: http(rpc) });
const fastpay = await FastPay.create({ publicClient, contract, chainId, authorities, storage: memoryStore() });
const { sent, incomplete } = await fastpay.history(parseAccount(sender));
const { received } = await fastpay.history(parseAccount(recipient));
const { certificate, archived } = await fastpay.evidence({ account: parseAccount(sender), sequence: 0n });
fastpay.close();
const shown = ({ digest, proof }) => ({ digest, proof: proof.type });
const isArchived = certificate === undefined && archived !== undefined;
console.log(JSON.stringify({ sent: sent.map(shown), received: received.map(shown), incomplete, isArchived }));
"#;

/// Checks that what `accounts[0]` paid to `accounts[1]`, once, is read from the archives: everybody has pruned it.
pub async fn read_through_archives(
    network: &Network,
    all: &[&Authority],
    [payer, payee]: [&User; 2],
    accounts: [AccountId; 2],
) {
    for authority in all {
        over_http(authority, accounts).await;
    }
    let received = payee.fastpay(["receive"]).await.unwrap();
    let payments = received["payments"].as_array().unwrap();
    assert_eq!((payments.len(), &payments[0]["value"]["amount"]), (1, &json!("1")), "{received}");
    let digest = &payments[0]["digest"];
    for (person, direction) in [(payer, "out"), (payee, "in")] {
        let history = person.fastpay(["history", "--only", direction]).await.unwrap();
        let events = history["events"].as_array().unwrap();
        assert_eq!((events.len(), &events[0]["digest"]), (1, digest), "{history}");
        assert_eq!((&events[0]["kind"], &events[0]["state"]), (&json!("payment"), &json!("settled")), "{history}");
        assert_eq!(person.fastpay(["audit"]).await.unwrap()["ok"], true);
    }
    let by_sdk = by_sdk(network, accounts);
    let shown = json!([{ "digest": digest, "proof": "checkpoint" }]);
    assert_eq!((&by_sdk["sent"], &by_sdk["received"]), (&shown, &shown), "{by_sdk}");
    // Deposits are in the contract's log alone.
    assert_eq!((&by_sdk["isArchived"], &by_sdk["incomplete"]), (&json!(true), &json!(["deposits"])), "{by_sdk}");
}

/// Checks that an observer shows the balances of a member, and that nobody takes it for one.
pub async fn shows_the_same(observer: &Authority, member: &Authority, accounts: &[AccountId]) {
    let shown = async |of: &Authority, account: &AccountId| {
        let http = of.endpoints().unwrap().http.clone().unwrap();
        let (status, body) = http_get(&http, &format!("/v1/accounts/{account}")).await.unwrap();
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()
    };
    for account in accounts {
        let (there, here) = (shown(observer, account).await, shown(member, account).await);
        for field in ["holdings", "nextSequence"] {
            assert_eq!(there[field], here[field], "{account}");
        }
        assert_eq!((&there["catchingUp"], &here["catchingUp"]), (&json!(true), &json!(false)), "{account}");
    }
}

/// As the explorer reads.
async fn over_http(authority: &Authority, [sender, recipient]: [AccountId; 2]) {
    let http = authority.endpoints().unwrap().http.clone().unwrap();
    let get = async |path: &str| {
        let (status, body) = http_get(&http, path).await?;
        Ok::<_, String>((status, serde_json::from_str::<Value>(&body).map_err(|error| format!("{error}: {body}"))?))
    };
    for path in [format!("/v1/accounts/{sender}/certificates/0"), "/v1/deposits/1".into()] {
        let (status, body) = get(&path).await.unwrap();
        assert_eq!((status, &body["code"]), (410, &json!("pruned")), "{}: {body}", authority.name());
    }
    for path in [format!("/v1/accounts/{sender}/archived/sent"), format!("/v1/accounts/{recipient}/archived/received")]
    {
        // An archive that skipped numbers completes itself first.
        let page = wait_for(PATIENCE, async || match get(&path).await? {
            (200, page) => Ok(page),
            other => Err(format!("{}, {path}: {other:?}", authority.name())),
        });
        let page = page.await.unwrap();
        let count = |of: &str| page[of].as_array().unwrap().len();
        assert_eq!(count("entries"), 1, "{page}");
        assert!(count("votes") >= 4, "a quorum of six: {page}");
    }
}

fn by_sdk(network: &Network, [sender, recipient]: [AccountId; 2]) -> Value {
    let place = network.place();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut compile = Command::new(root.join("node_modules/.bin/tsc"));
    compile.arg("-p").arg(root.join("sdk/tsconfig.build.json")).arg("--outDir").arg(place.path("sdk"));
    run(&mut compile).unwrap().success().unwrap();
    place.write("sdk/package.json", r#"{"type": "module"}"#).unwrap();
    let script = place.write("history.mjs", BY_SDK).unwrap();
    let authorities: Vec<_> = network.authorities.iter().map(|authority| authority.endpoints().unwrap()).collect();
    let authorities: Vec<_> = authorities.iter().map(|of| json!({ "name": of.name, "http": of.http })).collect();
    let deployment = json!({
        "rpc": network.chain().unwrap().url(), "contract": network.contract().unwrap(), "chainId": CHAIN_ID,
        "authorities": authorities, "sender": sender.to_string(), "recipient": recipient.to_string(),
    });
    let said = run(Command::new("node").arg(script).arg(deployment.to_string())).unwrap().success().unwrap();
    serde_json::from_str(&said.out).unwrap()
}
