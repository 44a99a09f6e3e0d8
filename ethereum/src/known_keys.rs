//! Keys whose secrets are public, because tests and tutorials use them: those of `script/KnownKeys.sol`, which the
//! deployment script refuses. Both compute the same list; a test in each language pins its hash.

use std::collections::BTreeSet;

use alloy::primitives::{Address, B256, U256, address, keccak256};
use alloy::sol_types::SolValue;
use fastpay_core::{AccountKey, Announcement};

/// The chain ID of anvil. Anybody's keys may be used there.
pub const LOCAL_CHAIN: u64 = 31_337;

/// The accounts of anvil and hardhat.
const MNEMONIC: [Address; 20] = [
    address!("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
    address!("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
    address!("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
    address!("0x90F79bf6EB2c4f870365E785982E1f101E93b906"),
    address!("0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65"),
    address!("0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc"),
    address!("0x976EA74026E726554dB657fA54763abd0C3a0aa9"),
    address!("0x14dC79964da2C08b23698B3D3cc7Ca32193d9955"),
    address!("0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f"),
    address!("0xa0Ee7A142d267C1f36714E4a8F75612F20a79720"),
    address!("0xBcd4042DE499D14e55001CcbB24a551F3b954096"),
    address!("0x71bE63f3384f5fb98995898A86B02Fb2426c5788"),
    address!("0xFABB0ac9d68B0B445fB7357272Ff202C5651694a"),
    address!("0x1CBd3b2770909D4e10f157cABC84C7264073C9Ec"),
    address!("0xdF3e18d64BC6A983f673Ab319CCaE4f1a57C7097"),
    address!("0xcd3B766CCDd6AE721141F452C550Ca635964ce71"),
    address!("0x2546BcD3c84621e976D8185a91A922aE77ECEC30"),
    address!("0xbDA5747bFD65F08deb54cb465eB87D40e51B197E"),
    address!("0xdD2FD4581271e230360230F9337D5c0430Bf44C0"),
    address!("0x8626f6940E2eb28930eFb4CeF49B2d1F2C9C1199"),
];
/// The secrets 1, 2, 3, …
const SMALL_KEYS: u64 = 1_000;
/// One byte, 32 times: 0xff so often is no secret.
const REPEATED_KEYS: u8 = 254;
/// `secret` of `testkit`: of Ethereum accounts (2) and of members' redemption keys (4).
const TESTKIT_PURPOSES: [u8; 2] = [2, 4];
const TESTKIT_EPOCHS: u64 = 3;
const TESTKIT_KEYS: u64 = 256;
/// `memberKey` of the contract's tests.
const MEMBER_KEYS: u64 = 1_000;
/// What the SDK's tests seed keys with.
const SDK_EPOCHS: u64 = 3;
const SDK_KEYS: u64 = 10;
/// Foundry's `makeAddr`.
const NAMES: [&str; 9] =
    ["alice", "bob", "relayer", "guardian", "recovery", "thief", "attacker", "an asset", "another asset"];

const VOTING_KEYS: &str = include_str!("../../script/known-voting-keys.json");

/// The first key of an announcement whose secret everybody knows: a member's, the guardian's or the recovery address's.
#[must_use]
pub fn known_key(announcement: &Announcement) -> Option<String> {
    let (addresses, voting_keys): (BTreeSet<_>, _) = (addresses().into_iter().collect(), voting_keys());
    let members = announcement.committee.members();
    if let Some(member) = members.iter().find(|member| voting_keys.contains(&member.name.to_string())) {
        return Some(member.name.to_string());
    }
    let redeeming = members.iter().map(|member| member.redemption_key);
    let mut others = redeeming.chain([announcement.guardian, announcement.recovery]);
    others.find(|address| addresses.contains(address)).map(|address| address.to_string())
}

fn voting_keys() -> BTreeSet<String> {
    serde_json::from_str(VOTING_KEYS).expect("the file is a list of texts")
}

/// The addresses of known secp256k1 keys, in the order of `KnownKeys.addresses`.
fn addresses() -> Vec<Address> {
    let small = (1..=SMALL_KEYS).map(|number| B256::from(U256::from(number)));
    let repeated = (1..=REPEATED_KEYS).map(B256::repeat_byte);
    let of_testkit = (0..TESTKIT_EPOCHS).flat_map(|epoch| (0..TESTKIT_KEYS).map(move |key| 1_000 * epoch + key));
    let of_testkit = of_testkit.flat_map(|number| TESTKIT_PURPOSES.map(|purpose| of_testkit_with(purpose, number)));
    let of_members =
        (0..MEMBER_KEYS).map(|number| keccak256(("redemption key", U256::from(number)).abi_encode_params()));
    let of_sdk =
        (0..SDK_EPOCHS).flat_map(|epoch| (0..SDK_KEYS).map(move |key| format!("redemption epoch {epoch} {key}")));
    let named = of_sdk.chain(NAMES.map(str::to_owned)).map(keccak256);
    let secrets = small.chain(repeated).chain(of_testkit).chain(of_members).chain(named);
    let secrets = secrets.chain([B256::from(U256::from(0xa11ce))]);
    MNEMONIC.into_iter().chain(secrets.filter_map(address_of)).collect()
}

fn of_testkit_with(purpose: u8, number: u64) -> B256 {
    let low = U256::from(u64::MAX);
    B256::from((U256::from_be_bytes(B256::repeat_byte(purpose).0) & !low) | U256::from(number))
}

fn address_of(secret: B256) -> Option<Address> {
    AccountKey::ethereum(secret.0).ok()?.account().ethereum_address()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy::primitives::b256;
    use fastpay_core::{AuthorityKeys, Committee, Digest, Epoch};

    /// `KNOWN_KEYS_HASH` of `test/Scripts.t.sol`, which is of the list of the deployment script.
    const HASH: B256 = b256!("0xced25480e533283eaa06e4fb2027d2646bcbba9a3b7b8eb9894243d965f9d7d6");

    #[test]
    fn the_list_is_that_of_the_deployment_script() {
        let words: Vec<u8> = addresses().iter().flat_map(|address| address.into_word().0).collect();
        assert_eq!((words.len() / 32, keccak256(words)), (3_850, HASH));
    }

    #[test]
    fn a_known_key_is_found_in_each_place_of_an_announcement() {
        let keys = |number: u8| AuthorityKeys::from_secrets(keccak256([number]).0, keccak256([number, 1]).0).unwrap();
        let unknown = |number: u8| Address::from_word(keccak256([number, 2]));
        let announcement = |members: Vec<_>, guardian, recovery| Announcement {
            committee: Committee::new(Epoch(1), members).unwrap(),
            guardian,
            recovery,
            compromised_since: Epoch(1),
            checkpoint: Digest::ZERO,
            deadline: 1,
        };
        let members = || (0..4).map(|number| keys(number).public()).collect::<Vec<_>>();
        assert_eq!(known_key(&announcement(members(), unknown(1), Address::ZERO)), None);
        assert_eq!(known_key(&announcement(members(), MNEMONIC[0], unknown(2))), Some(MNEMONIC[0].to_string()));
        assert_eq!(known_key(&announcement(members(), unknown(1), MNEMONIC[9])), Some(MNEMONIC[9].to_string()));
        let mut with = members();
        with[2].redemption_key = MNEMONIC[19];
        assert_eq!(known_key(&announcement(with, unknown(1), unknown(2))), Some(MNEMONIC[19].to_string()));
        let mut with = members();
        with[1].name = AuthorityKeys::from_secrets([1; 32], [1; 32]).unwrap().public().name;
        assert_eq!(known_key(&announcement(with.clone(), unknown(1), unknown(2))), Some(with[1].name.to_string()));
    }
}
