//! Arbitrary values of core's types. Whether they are valid does not matter to the wire.

use fastpay_core::{
    AccountId, Amount, Asset, AuthorityName, Authorization, Certificate, Deposit, EcdsaSignature, Ed25519Signature,
    Epoch, MERKLE_PATH_LENGTH_MAX, MerklePath, Output, Outputs, PAYOUT_OUTPUTS_MAX, Payment, Payout, PrimaryAddress,
    Redemption, SequenceNumber, TransactionIndex, Transfer, TransferOrder, Vote, VoteSignature,
};
use proptest::prelude::*;

fn account() -> impl Strategy<Value = AccountId> {
    any::<[u8; 32]>().prop_map(AccountId)
}

fn address() -> impl Strategy<Value = PrimaryAddress> {
    any::<[u8; 20]>().prop_map(PrimaryAddress::new)
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![any::<u128>(), Just(0), Just(u128::MAX)].prop_map(Amount)
}

fn bytes<const N: usize>() -> impl Strategy<Value = [u8; N]> {
    proptest::collection::vec(any::<u8>(), N).prop_map(|bytes| bytes.try_into().unwrap())
}

fn ed25519_signature() -> impl Strategy<Value = Ed25519Signature> {
    bytes().prop_map(Ed25519Signature)
}

fn ecdsa_signature() -> impl Strategy<Value = EcdsaSignature> {
    bytes().prop_map(EcdsaSignature)
}

pub fn transfer() -> impl Strategy<Value = Transfer> {
    let common = (account(), address().prop_map(Asset), amount(), any::<u64>(), any::<[u8; 32]>());
    (common, account(), address(), amount(), outputs(), 0..3_u8).prop_map(
        |((sender, asset, amount, sequence, memo), recipient, address, fee, outputs, kind)| {
            let (sequence, memo) = (SequenceNumber(sequence), memo.into());
            match kind {
                0 => {
                    Transfer::Redemption(Redemption { sender, recipient: address, asset, amount, fee, sequence, memo })
                }
                1 => Transfer::Payment(Payment { sender, recipient, asset, amount, sequence, memo }),
                _ => Transfer::Payout(Payout { sender, asset, outputs, sequence, memo }),
            }
        },
    )
}

fn output() -> impl Strategy<Value = Output> {
    (account(), any::<u64>(), any::<[u8; 32]>()).prop_map(|(recipient, amount, memo)| Output {
        recipient,
        amount: Amount(u128::from(amount) << 32),
        memo: memo.into(),
    })
}

fn outputs() -> impl Strategy<Value = Outputs> {
    use proptest::collection::vec;
    prop_oneof![9 => vec(output(), 1..8), 1 => vec(output(), PAYOUT_OUTPUTS_MAX)]
        .prop_map(|outputs| Outputs::new(outputs).unwrap())
}

pub fn order() -> impl Strategy<Value = TransferOrder> {
    let authorization = prop_oneof![
        (any::<[u8; 32]>(), ed25519_signature()).prop_map(|(key, signature)| Authorization::Ed25519 { key, signature }),
        ecdsa_signature().prop_map(|signature| Authorization::Ethereum { signature }),
    ];
    (transfer(), authorization).prop_map(|(transfer, authorization)| TransferOrder { transfer, authorization })
}

pub fn vote() -> impl Strategy<Value = Vote> {
    let siblings = proptest::collection::vec(any::<[u8; 32]>().prop_map(Into::into), 0..=MERKLE_PATH_LENGTH_MAX);
    let path = (any::<u16>(), siblings).prop_map(|(directions, siblings)| MerklePath { directions, siblings });
    let signature = prop_oneof![
        (ed25519_signature(), path).prop_map(|(signature, path)| VoteSignature::Payment { signature, path }),
        ecdsa_signature().prop_map(|signature| VoteSignature::Redemption { signature }),
    ];
    (any::<[u8; 32]>(), signature)
        .prop_map(|(authority, signature)| Vote { authority: AuthorityName(authority), signature })
}

pub fn certificate() -> impl Strategy<Value = Certificate> {
    (order(), any::<u64>(), proptest::collection::vec(vote(), 0..9)).prop_map(|(order, epoch, votes)| Certificate {
        order,
        epoch: Epoch(epoch),
        votes,
    })
}

pub fn deposit() -> impl Strategy<Value = Deposit> {
    (any::<u64>(), account(), address(), amount()).prop_map(|(index, recipient, asset, amount)| Deposit {
        index: TransactionIndex(index),
        recipient,
        asset: Asset(asset),
        amount,
    })
}

/// Some order, the same each time.
pub fn some_order(sequence: u64) -> TransferOrder {
    let payment = Payment {
        sender: AccountId([1; 32]),
        recipient: AccountId([2; 32]),
        asset: Asset::ETHER,
        amount: Amount(7),
        sequence: SequenceNumber(sequence),
        memo: Default::default(),
    };
    TransferOrder {
        transfer: Transfer::Payment(payment),
        authorization: Authorization::Ed25519 { key: [3; 32], signature: Ed25519Signature([4; 64]) },
    }
}

/// Some certificate, the same each time.
pub fn some_certificate(sequence: u64) -> Certificate {
    Certificate { order: some_order(sequence), epoch: Epoch(0), votes: vec![some_vote()] }
}

pub fn some_vote() -> Vote {
    let signature = VoteSignature::Payment { signature: Ed25519Signature([5; 64]), path: MerklePath::default() };
    Vote { authority: AuthorityName([6; 32]), signature }
}
