//! `vectors/private-objects.json`: hashes, keys, commitments and signatures, for implementations of their own.
//!
//! After a change that is meant: `UPDATE_VECTORS=1 cargo test --workspace --test private vectors`.

use fastpay_core::private::{
    Nullifier, NullifierStatus, PrivateCommittee, PrivateRules, PrivateTransfer, Status, notes_hash,
};
use fastpay_core::{AccountId, Amount, Epoch, SequenceNumber};
use fastpay_private::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::deployment;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/private-objects.json");

fn hex(bytes: impl AsRef<[u8]>) -> String {
    format!("0x{}", hex::encode(bytes))
}

fn element(element: Fr) -> String {
    hex(field_to_bytes(element))
}

fn numbers<const N: usize>() -> [Fr; N] {
    std::array::from_fn(|at| Fr::from(at as u64 + 1))
}

fn build() -> Value {
    let separator = [0xd0; 32];
    let domain = Domain::new(&separator);
    let random = &mut StdRng::seed_from_u64(21);
    let key = SpendingKey::from_seed(&[1; 32]);
    let (owner, asset) = (key.owner(), Asset([0xa5; 20]));
    let coin = Coin { value: 1_000_000, asset, rho: deposit_rho(&[2; 32]), owner, r: Fr::from(3) };
    let first = Account::first(owner, asset, domain);
    let history = history_after(first.history, coin.commitment(), 5, 12);
    let account = Account {
        balance: u128::MAX,
        spent: 7,
        total: 1 << 64,
        period: 12,
        received: 9,
        history,
        rho: key.account_nullifier(first.rho),
        r: Fr::from(4),
        ..first
    };
    let limits = Limits { transaction: 1, period: 2, total: 3, hold: 4, receive: u128::MAX };
    let credential = Credential { owner, asset, limits, expiry: 99, attributes: Fr::from(6) };
    let address = Address { owner, notes: [8; 32] };
    let listed: Vec<Tag> = (1..=9).map(|seed| SpendingKey::from_seed(&[seed * 16; 32]).owner().tag()).collect();
    let sanctions = Sanctions::new(listed.iter().copied()).unwrap();
    let path = sanctions.path(owner.tag());
    let signer = SigningKey::from_seed([9; 32]);
    let sign = |kind, name: &str, message, random: &mut StdRng| {
        let signature = signer.sign(domain, kind, message, random);
        signer.public().verify(domain, kind, message, &signature).unwrap();
        json!({ "kind": name, "message": element(message), "signature": hex(signature.to_bytes()) })
    };
    json!({
        "messages": messages(),
        "notes": notes(account, coin, &mut StdRng::seed_from_u64(22)),
        "poseidon": {
            "h2 of 1, 2": element(h2(numbers())),
            "h4 of 1 to 4": element(h4(numbers())),
            "h8 of 1 to 8": element(h8(numbers())),
        },
        "domain": { "separator": hex(separator), "element": element(domain.element()) },
        "generator": hex(generator()),
        "owner": { "seed": hex([1; 32]), "owner": element(owner.0), "tag": format!("{:#032x}", owner.tag().number()) },
        "coin": {
            "value": coin.value.to_string(), "asset": hex(asset.0), "payment": hex([2; 32]), "rho": element(coin.rho),
            "r": element(coin.r), "inner": element(Coin::inner(owner, coin.r)), "commitment": element(coin.commitment()),
            "nullifier": element(key.coin_nullifier(coin.rho)),
        },
        "first account": {
            "rho": element(first.rho), "commitment": element(first.commitment()),
            "nullifier": element(key.account_nullifier(first.rho)),
        },
        "account": {
            "balance": account.balance.to_string(), "spent": account.spent.to_string(), "total": account.total.to_string(),
            "period": account.period, "received": account.received.to_string(), "history": element(history),
            "rho": element(account.rho), "r": element(account.r), "commitment": element(account.commitment()),
        },
        "credential": {
            "transaction": "1", "period": "2", "total": "3", "hold": "4", "receive": u128::MAX.to_string(), "expiry": 99,
            "attributes": element(credential.attributes), "message": element(credential.message()),
        },
        "address": { "notes": hex(address.notes), "text": address.to_string() },
        "sanctions": {
            "listed": listed.iter().map(|tag| format!("{:#032x}", tag.number())).collect::<Vec<_>>(),
            "root": element(sanctions.root()), "low": element(path.low), "high": element(path.high),
        },
        "absent member": hex(absent_key(domain, 3, 1).to_bytes()),
        "signatures": {
            "seed": hex([9; 32]), "key": hex(signer.public().to_bytes()),
            "made": [
                sign(Kind::Coin, "coin", coin.commitment(), random),
                sign(Kind::Account, "account", account.commitment(), random),
                sign(Kind::Credential, "credential", credential.message(), random),
            ],
        },
    })
}

/// A note of each kind, for the keys of one seed.
fn notes(account: Account, coin: Coin, random: &mut StdRng) -> Value {
    let (received, own) = (NoteKey::<Received>::from_seed(&[1; 32]), NoteKey::<Own>::from_seed(&[1; 32]));
    let payment = PaymentNote { value: coin.value, r: coin.r, memo: [7; 32] };
    let to_self = OwnNote { account, payee: coin.owner, value: coin.value, r: coin.r };
    let (payment_note, own_note) =
        (payment.seal(&received.public(), account.rho, random).unwrap(), to_self.seal(&own, random));
    json!({
        "seed": hex([1; 32]), "received key": hex(received.public()),
        "account nullifier": element(account.rho), "memo": hex(payment.memo),
        "payment of the coin": hex(payment_note), "own, with the account": hex(own_note),
        "hash of both": hex(notes_hash(&payment_note, &own_note)),
    })
}

/// The digests of one message of each type.
fn messages() -> Value {
    let transfer = PrivateTransfer {
        committee: 3,
        rules: u64::MAX,
        asset: fastpay_core::Asset([0xa5; 20].into()),
        account_spent: Nullifier([1; 32].into()),
        sequence: SequenceNumber(8),
        coin_spent: Nullifier([2; 32].into()),
        account: [3; 32].into(),
        coin: [4; 32].into(),
        amount_out: Amount(u128::MAX),
        recipient: AccountId([5; 32]),
        memo: [6; 32].into(),
        notes_hash: [7; 32].into(),
    };
    let committee = PrivateCommittee {
        version: 1,
        epoch: Epoch(2),
        coin_keys: vec![[1; 32].into(), [2; 32].into(), [3; 32].into(), [4; 32].into()],
        verifying_key_hash: [5; 32].into(),
        proving_key_hash: [6; 32].into(),
    };
    let rules = PrivateRules {
        version: 1,
        registrar: [2; 32].into(),
        sanctions_root: [3; 32].into(),
        list_hash: [4; 32].into(),
        period: u32::MAX,
        oldest_accepted: 5,
    };
    let status = NullifierStatus {
        epoch: Epoch(1),
        nullifier: Nullifier([2; 32].into()),
        status: Status::Spent,
        digest: [3; 32].into(),
        context: [4; 32].into(),
    };
    let domain = deployment();
    let of_transfer = domain.private_transfer_digest(&transfer);
    json!({
        "separator": hex(domain.separator()),
        "nullifier's account": {
            "nullifier": hex(transfer.account_spent.0), "account": hex(transfer.account_spent.account().0),
        },
        "PrivateTransfer": {
            "committee": "3", "rules": u64::MAX.to_string(), "asset": hex(transfer.asset.0),
            "accountSpent": hex(transfer.account_spent.0), "sequence": "8", "coinSpent": hex(transfer.coin_spent.0),
            "account": hex(transfer.account), "coin": hex(transfer.coin), "amountOut": u128::MAX.to_string(),
            "recipient": hex(transfer.recipient.0), "memo": hex(transfer.memo), "notesHash": hex(transfer.notes_hash),
            "digest": hex(of_transfer), "digest as an element": element(field_from_hash(of_transfer.0)),
        },
        "PrivateCommittee": {
            "version": "1", "epoch": "2", "coinKeys": committee.coin_keys.iter().map(hex).collect::<Vec<_>>(),
            "verifyingKeyHash": hex(committee.verifying_key_hash), "provingKeyHash": hex(committee.proving_key_hash),
            "digest": hex(domain.private_committee_digest(&committee)),
        },
        "PrivateRules": {
            "version": "1", "registrar": hex(rules.registrar), "sanctionsRoot": hex(rules.sanctions_root),
            "listHash": hex(rules.list_hash), "period": u32::MAX, "oldestAccepted": "5",
            "digest": hex(domain.private_rules_digest(&rules)),
        },
        "NullifierStatus": {
            "epoch": "1", "nullifier": hex(status.nullifier.0), "status": 2, "digest of transfer": hex(status.digest),
            "context": hex(status.context), "digest": hex(domain.nullifier_status_digest(&status)),
        },
    })
}

#[test]
fn the_vectors_are_what_the_code_builds() {
    let text = format!("{:#}\n", build());
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::write(PATH, &text).unwrap();
    }
    let found = std::fs::read_to_string(PATH).unwrap();
    assert!(
        found == text,
        "vectors/private-objects.json is not what the code builds; if that is meant, set UPDATE_VECTORS=1"
    );
}
