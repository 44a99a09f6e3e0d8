//! Transactions as core's rules have them.

use fastpay_core::{AccountId, Domain as Deployment, PrimaryAddress, SequenceNumber};
use fastpay_private_prover::*;

use super::scene::{SEPARATOR, Scene};

/// A local network, and the contract that tests invent.
pub fn deployment() -> Deployment {
    Deployment::new(DEVELOPMENT_CHAIN, PrimaryAddress::repeat_byte(0xfa))
}

/// What a transfer says besides, with a recipient if something leaves the pool.
pub fn envelope(public: &Public) -> Envelope {
    let leaves = public.withdrawn > 0;
    let of = |byte| if leaves { [byte; 32] } else { [0; 32] };
    Envelope {
        committee: 1,
        rules: 2,
        sequence: SequenceNumber(0),
        recipient: AccountId(of(3)),
        memo: of(4).into(),
        payment_note: [5; 129],
        own_note: [6; 261],
    }
}

#[test]
fn the_scene_is_of_this_deployment() {
    assert_eq!(deployment().separator(), SEPARATOR);
}

/// A transfer has all that the proof is of, and its digest, to which the proof is bound, all the rest.
#[test]
fn a_transfer_says_what_is_proved_and_binds_all_else() {
    let scene = Scene::new(4);
    let paid = scene.prepare(&scene.exit()).unwrap();
    let of = |alter: fn(&mut Envelope)| {
        let mut envelope = envelope(&paid.public);
        alter(&mut envelope);
        envelope.order(&paid.public).transfer
    };
    let transfer = of(|_| ());
    let Public { asset, account_nullifier, coin_nullifier, account, coin, withdrawn, .. } = paid.public.clone();
    let elements = [account_nullifier, coin_nullifier, account, coin].map(field_to_bytes);
    let [spent, claimed] = [transfer.account_spent, transfer.coin_spent].map(|nullifier| nullifier.0.0);
    assert_eq!([spent, claimed, transfer.account.0, transfer.coin.0], elements);
    assert_eq!((transfer.asset.0.0.0, transfer.amount_out.0), (asset.0, withdrawn));
    assert_eq!((transfer.committee, transfer.rules), (1, 2));
    assert_eq!((transfer.recipient.0, transfer.memo.0), ([3; 32], [4; 32]));
    let others: [fn(&mut Envelope); 7] = [
        |envelope| envelope.committee += 1,
        |envelope| envelope.rules += 1,
        |envelope| envelope.sequence.0 += 1,
        |envelope| envelope.recipient.0[0] ^= 1,
        |envelope| envelope.memo[31] ^= 1,
        |envelope| envelope.payment_note[128] ^= 1,
        |envelope| envelope.own_note[0] ^= 1,
    ];
    let digest = |transfer| deployment().private_transfer_digest(&transfer);
    for (at, other) in others.into_iter().enumerate() {
        assert_ne!(digest(of(other)), digest(transfer), "alteration {at}");
    }
}
