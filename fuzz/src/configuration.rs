//! TOML and JSON files that operators and owners write. The files are not hostile but may be mistyped, and a mistake
//! must cause an error message and never a panic.

use fastpay_client::{AuthorityEndpoints, Endpoints};
use fastpay_core::{Amount, Asset};
use fastpay_core::{Committees, Genesis, GenesisBalance};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::Scratch;
use crate::signed::SIGNED;
use crate::tagged;

thread_local! {
    static SCRATCH: Scratch = Scratch::new();
}

/// The first byte selects which file the other bytes are.
pub fn run(bytes: &[u8]) {
    let Some((tag, bytes)) = bytes.split_first() else { return };
    SCRATCH.with(|scratch| match tag % 6 {
        0 => {
            let path = scratch.put("node.toml", bytes);
            if let Ok(config) = fastpay_node::authority::config::Config::read(&path, Default::default()) {
                let addresses = config.shard_addresses().expect("it was checked");
                assert_eq!(addresses.len(), config.shards.get() as usize);
                assert!(config.primary.is_some() != config.genesis.is_some() && !config.keys.is_empty());
                assert!(config.data.starts_with(scratch.path()) || config.data.is_absolute());
            }
        }
        1 => {
            let path = scratch.put("relayer.toml", bytes);
            if let Ok(config) = fastpay_relayer::Config::read(&path, Default::default()) {
                assert!(config.bundle.items_max > 0 && config.bundle.in_flight_max > 0);
                let _ = config.assets.worth(Asset::ETHER, Amount(u128::MAX));
            }
        }
        2 => {
            use fastpay_wallet::folder::Config;
            let path = scratch.put("config.toml", bytes);
            if let Ok(config) = Config::read(&path) {
                assert!(config.primary.is_some() != config.genesis.is_some());
                config.write(&path, true).unwrap();
                assert_eq!(Config::read(&path).unwrap(), config);
            }
        }
        3 => {
            let path = scratch.put("endpoints.json", bytes);
            if let Ok(endpoints) = Endpoints::read(&path) {
                written_as_read(&endpoints);
                assert!(endpoints.authorities.iter().all(|authority| !authority.shards.is_empty()));
            }
        }
        4 => {
            if let Ok(genesis) = serde_json::from_slice::<Genesis>(bytes) {
                written_as_read(&genesis);
                let _ = (genesis.domain(), genesis.deposits().count());
                if let Ok(committee) = genesis.committee() {
                    assert!(3 * committee.quorum() > 2 * committee.members().len());
                }
            }
        }
        _ => {
            if let Ok(committees) = serde_json::from_slice::<Committees>(bytes) {
                written_as_read(&committees);
                assert_eq!(committees.iter().count() as u64, committees.next_epoch().0);
            }
        }
    });
}

fn written_as_read<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    assert_eq!(&serde_json::from_slice::<T>(&serde_json::to_vec(value).unwrap()).unwrap(), value);
}

const NODE: &str = r#"
data = "data"
high_water_mark = "w"
endpoints = "e.json"
shards = 2
accounts_in_memory = 100000
listen = "127.0.0.1:9000"
http = "[::1]:9100"
genesis = "/etc/genesis.json"
[[keys]]
voting = "v.key"
redemption = "r.key"
[tls]
certificate = "c.pem"
key = "k.pem"
"#;
const PRIMARY: &str = r#"
[primary]
rpc_urls = ["http://127.0.0.1:8545"]
chain_id = 31337
contract = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
finality = { confirmations = 3 }
"#;
const RELAYER: &str = r#"
endpoints = "e.json"
data_dir = "/data"
[key]
file = "gas.key"
passphrase_file = "p"
[bundle]
items_max = 9
patient_above_gwei = 20
below_cost = "leave"
[assets]
"0x0000000000000000000000000000000000000000" = "1"
"0x0101010101010101010101010101010101010101" = "0.0004"
[traces]
endpoint = "http://127.0.0.1:4317"
ratio = 0.5
"#;

/// One valid file of each kind.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let json = |value: &dyn Fn() -> serde_json::Result<Vec<u8>>| value().unwrap();
    let members = SIGNED.committee.committee.members().to_vec();
    let balance =
        GenesisBalance { account: SIGNED.orders[0].transfer.sender(), asset: Asset::ETHER, amount: Amount(5) };
    let genesis = Genesis { committee: members.clone(), balances: vec![balance] };
    let authority = AuthorityEndpoints {
        name: members[0].name,
        shards: vec!["http://127.0.0.1:9000".into(), "https://[::1]:9001".into()],
        http: Some("http://127.0.0.1:9100".into()),
        tls_ca: Some("ca.pem".into()),
        label: Some("Münster".into()),
    };
    let relayers = vec!["https://relayer.example".into()];
    let explorer = Some("https://wallet.example".into());
    let endpoints = Endpoints { authorities: vec![authority], relayers, explorer };
    let committees = Committees::new(SIGNED.committee.committee.clone()).unwrap();
    vec![
        tagged(0, NODE.as_bytes()),
        tagged(0, format!("{}{PRIMARY}", NODE.replace("genesis = \"/etc/genesis.json\"", "")).as_bytes()),
        tagged(1, format!("{RELAYER}{PRIMARY}").as_bytes()),
        tagged(2, format!("endpoints = \"e.json\"{PRIMARY}").as_bytes()),
        tagged(2, b"endpoints = \"e.json\"\ngenesis = \"g.json\"\n"),
        tagged(3, &json(&|| serde_json::to_vec(&endpoints))),
        tagged(4, &json(&|| serde_json::to_vec(&genesis))),
        tagged(5, &json(&|| serde_json::to_vec(&committees))),
    ]
}
