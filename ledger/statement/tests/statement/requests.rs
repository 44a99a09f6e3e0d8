//! Requests: who signed them, and for which deployment.

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Authority, AuthorityName, Committee, ContractVote, Digest, EcdsaSignature,
    Ed25519Signature, Epoch, PrimaryAddress, SequenceNumber,
};
use fastpay_ledger_statement::{
    Action, Announcing, ClusterId, CommitteeNumber, Deployment, Get, Instruction, KEY_BYTES_MAX, Key,
    NAMESPACE_BYTES_MAX, Namespace, NextCommittee, Possession, Request, RequestError, SignedInstruction,
    VALUE_BYTES_MAX, Value,
};

use crate::fixture::{DEPLOYMENT, account};

fn keys() -> [AccountKey; 2] {
    [AccountKey::ed25519([5; 32]), AccountKey::ethereum([6; 32]).unwrap()]
}

fn transfer(key: &AccountKey) -> SignedInstruction {
    let action = Action::Transfer { to: account(1), asset: Asset::ETHER, amount: Amount(7) };
    let (shard, sequence) = (ClusterId(1), SequenceNumber(3));
    Instruction { deployment: DEPLOYMENT, shard, signer: key.account(), sequence, action }.signed(key)
}

fn verify(signed: SignedInstruction) -> Result<(), RequestError> {
    Request::Instruct(Box::new(signed)).verify(DEPLOYMENT).map(drop)
}

#[test]
fn owners_of_both_kinds_of_key_sign() {
    for key in keys() {
        assert_eq!(verify(transfer(&key)), Ok(()));
    }
}

#[test]
fn an_altered_or_foreign_instruction_is_refused() {
    let [ed25519, ethereum] = keys();
    for (key, other) in [(&ed25519, &ethereum), (&ethereum, &ed25519)] {
        let refused = |alter: &dyn Fn(&mut SignedInstruction)| {
            let mut altered = transfer(key);
            alter(&mut altered);
            verify(altered).unwrap_err()
        };
        let bad = RequestError::Signature(key.account());
        let to_another = Action::Transfer { to: account(2), asset: Asset::ETHER, amount: Amount(7) };
        assert_eq!(refused(&|signed| signed.instruction.action = to_another.clone()), bad);
        assert_eq!(refused(&|signed| signed.instruction.shard = ClusterId(2)), bad);
        assert_eq!(refused(&|signed| signed.instruction.sequence = SequenceNumber(4)), bad);
        assert_eq!(refused(&|signed| signed.authorization = transfer(other).authorization), bad);
        let victim = other.account();
        assert_eq!(refused(&|signed| signed.instruction.signer = victim), RequestError::Signature(victim));
        let nobody = AccountId::ZERO;
        assert_eq!(refused(&|signed| signed.instruction.signer = nobody), RequestError::Signature(nobody));
        let foreign = Deployment(Digest::ZERO);
        let other_deployment = RequestError::OtherDeployment(foreign);
        assert_eq!(refused(&|signed| signed.instruction.deployment = foreign), other_deployment);
        // Signed for the other deployment, and relabelled.
        let there = Instruction { deployment: foreign, ..transfer(key).instruction }.signed(key);
        assert_eq!(refused(&|signed| signed.authorization = there.authorization), bad);
    }
}

#[test]
fn names_keys_and_values_are_bounded() {
    assert!(Namespace::new("a".repeat(NAMESPACE_BYTES_MAX)).is_some());
    for name in ["", "A", "a b", "ä", "a/b", &"a".repeat(NAMESPACE_BYTES_MAX + 1)] {
        assert!(Namespace::new(name.into()).is_none(), "{name:?}");
        assert!(borsh::from_slice::<Namespace>(&borsh::to_vec(name).unwrap()).is_err(), "{name:?}");
    }
    for (length, fits) in [(0, false), (1, true), (KEY_BYTES_MAX, true), (KEY_BYTES_MAX + 1, false)] {
        let bytes = vec![1_u8; length];
        assert_eq!(Key::new(bytes.clone()).is_some(), fits);
        assert_eq!(borsh::from_slice::<Key>(&borsh::to_vec(&bytes).unwrap()).is_ok(), fits);
    }
    for (length, fits) in [(0, true), (VALUE_BYTES_MAX, true), (VALUE_BYTES_MAX + 1, false)] {
        let bytes = vec![1_u8; length];
        assert_eq!(Value::new(bytes.clone()).is_some(), fits);
        assert_eq!(borsh::from_slice::<Value>(&borsh::to_vec(&bytes).unwrap()).is_ok(), fits);
    }
}

#[test]
fn a_request_that_no_group_could_carry_is_refused() {
    let [key, _] = keys();
    let vote = ContractVote { authority: AuthorityName([1; 32]), signature: EcdsaSignature([0; 65]) };
    let Action::Transfer { asset, amount, .. } = transfer(&key).instruction.action else { panic!("a transfer") };
    let redemption = fastpay_core::Redemption {
        sender: account(1),
        recipient: Default::default(),
        asset,
        amount,
        fee: amount,
        sequence: SequenceNumber(0),
        memo: Default::default(),
    };
    let action =
        Action::Redeem { committee: Default::default(), redemption, epoch: Default::default(), votes: vec![vote; 700] };
    let signed = Instruction { action, ..transfer(&key).instruction }.signed(&key);
    assert!(matches!(verify(signed), Err(RequestError::TooLong { found }) if found > 64 << 10));
}

/// 255 members, with a proof for each, and the votes of as large a committee.
#[test]
fn the_largest_announcement_is_a_request() {
    let [key, _] = keys();
    let member = |at: u8| Authority { name: AuthorityName([at; 32]), redemption_key: PrimaryAddress::repeat_byte(at) };
    let committee = Committee::new(Epoch(1), (1..=255).map(member).collect()).unwrap();
    let quorum = committee.quorum();
    let next = NextCommittee {
        committee,
        guardian: PrimaryAddress::repeat_byte(1),
        compromised_since: Epoch(1),
        checkpoint: Digest::ZERO,
        deadline: u64::MAX,
    };
    let proof =
        Possession { redemption_signature: EcdsaSignature([1; 65]), voting_signature: Ed25519Signature([1; 64]) };
    let vote = ContractVote { authority: AuthorityName([1; 32]), signature: EcdsaSignature([0; 65]) };
    let (committee, proofs, votes) = (CommitteeNumber(7), vec![proof; 255], vec![vote; quorum]);
    let action = Action::Announce(Box::new(Announcing { committee, next, proofs, votes }));
    assert_eq!(verify(Instruction { action, ..transfer(&key).instruction }.signed(&key)), Ok(()));
}

#[test]
fn the_nonce_of_a_read_names_its_answer() {
    let get = |nonce| {
        let (namespace, key) = (Namespace::new("n".into()).unwrap(), Key::new(vec![1]).unwrap());
        Request::Get(Get { namespace, key, nonce }).verify(DEPLOYMENT).unwrap().digest()
    };
    assert_ne!(get(1), get(2));
}
