//! The statement once more, as a program: which rules a witness breaks. It shares the hashes with the circuit and nothing
//! else, so each tests the other. A wallet asks here before it proves, and learns which rule stands in its way.

use fastpay_private::{Fr, GapPath, Kind, Owner, Public, PublicKey, Shape, Signature, field_from_u128, h2, h4, h8};
use ff::{Field, PrimeField};

use crate::statement::{Rule, Witness};

/// The rules that the witness breaks, in ascending order. None: the statement is true.
#[must_use]
pub fn broken_rules(shape: Shape, public: &Public, witness: &Witness) -> Vec<Rule> {
    Claims { shape, public, witness, owner: witness.key.owner() }.broken()
}

/// Whether the element is a number of so many bits.
fn fits(element: Fr, bits: usize) -> bool {
    let bytes = element.to_repr();
    let (whole, rest) = (bits / 8, bits % 8);
    bytes.iter().enumerate().all(|(at, byte)| match at {
        at if at < whole => true,
        at if at == whole => byte >> rest == 0,
        _ => *byte == 0,
    })
}

struct Claims<'a> {
    shape: Shape,
    public: &'a Public,
    witness: &'a Witness,
    owner: Owner,
}

impl Claims<'_> {
    fn broken(&self) -> Vec<Rule> {
        Rule::ALL.into_iter().filter(|rule| !self.holds(*rule)).collect()
    }

    fn holds(&self, rule: Rule) -> bool {
        let (public, witness) = (self.public, self.witness);
        let (account, output, limits) = (&witness.account, &witness.output, &witness.credential);
        let (withdrawn, period) = (field_from_u128(public.withdrawn), Fr::from(u64::from(public.period)));
        let amount = |element| fits(element, 128);
        let to_self = output.owner == self.owner.0;
        let kept = if to_self { output.value } else { Fr::ZERO };
        let to_others = output.value - kept;
        let (given, received) = (to_others + withdrawn, witness.claimed.value - kept);
        let balance = account.balance + witness.claimed.value - output.value - withdrawn;
        let if_same = |before| if account.period == period { before } else { Fr::ZERO };
        let (spent, received_in_period) = (if_same(account.spent) + given, if_same(account.received) + received);
        let total = account.total + given;
        let gives = |room| given == Fr::ZERO || amount(room);
        let receives = |room| received == Fr::ZERO || amount(room);
        match rule {
            Rule::Signers => self.signers_differ(),
            Rule::FirstAccount => {
                let empty =
                    [account.balance, account.spent, account.total, account.period, account.received, account.history];
                let rho = h4([self.owner.0, public.asset.element(), public.domain.element(), Fr::ZERO]);
                !witness.first || account.rho == rho && empty.iter().all(|value| *value == Fr::ZERO)
            }
            Rule::AccountSigned => {
                let more = h4([account.period, account.received, account.history, Fr::ZERO]);
                let values = [account.balance, account.spent, account.total, more, account.rho, account.r];
                witness.first || self.signed(Kind::Account, self.owned(values), &witness.account_signatures)
            }
            Rule::AccountNullifier => witness.key.account_nullifier(account.rho) == public.account_nullifier,
            Rule::Dummy => !witness.dummy || witness.claimed.value == Fr::ZERO,
            Rule::CoinSigned => {
                let inner = h2([self.owner.0, witness.claimed.r]);
                let coin = h4([witness.claimed.value, public.asset.element(), witness.claimed.rho, inner]);
                witness.dummy || self.signed(Kind::Coin, coin, &witness.coin_signatures)
            }
            Rule::CoinNullifier => witness.key.coin_nullifier(witness.claimed.rho) == public.coin_nullifier,
            Rule::OutputValue => amount(output.value),
            Rule::OutputCommitment => {
                let inner = h2([output.owner, output.r]);
                h4([output.value, public.asset.element(), public.account_nullifier, inner]) == public.coin
            }
            Rule::Exit => {
                let all = [limits.transaction, limits.period, limits.total, limits.hold, limits.receive];
                let unlimited = all.iter().all(|limit| *limit == field_from_u128(u128::MAX));
                let forever = limits.expiry == Fr::from(u64::from(u32::MAX));
                let leaves = to_others == Fr::ZERO && amount(withdrawn - received);
                !witness.exit || !witness.first && leaves && unlimited && forever
            }
            Rule::CredentialSigned => {
                let more = h4([limits.hold, limits.receive, limits.expiry, limits.attributes]);
                let values = [limits.transaction, limits.period, limits.total, more, Fr::ZERO, Fr::ZERO];
                let by = |signature| self.signed_by(&public.registrar, Kind::Credential, self.owned(values), signature);
                witness.exit || by(&witness.credential_signature)
            }
            Rule::Expiry => fits(limits.expiry - period, 32),
            Rule::Kept => amount(received),
            Rule::Balance => amount(balance),
            Rule::Hold => receives(limits.hold - balance),
            Rule::Transaction => amount(limits.transaction - given),
            Rule::Time => fits(period - account.period, 32),
            Rule::Period => gives(limits.period - spent),
            Rule::Receive => receives(limits.receive - received_in_period),
            Rule::Total => gives(limits.total - total),
            Rule::AccountCommitment => {
                let history = h4([account.history, public.coin, withdrawn, period]);
                let more = h4([period, received_in_period, history, Fr::ZERO]);
                self.owned([balance, spent, total, more, public.account_nullifier, witness.r]) == public.account
            }
            Rule::PayerListed => self.unlisted(self.owner, &witness.payer_gap),
            Rule::PayeeListed => self.unlisted(Owner(output.owner), &witness.payee_gap),
        }
    }

    /// The hash of what belongs to the owner in the asset.
    fn owned(&self, [a, b, c, d, e, f]: [Fr; 6]) -> Fr {
        h8([self.owner.0, self.public.asset.element(), a, b, c, d, e, f])
    }

    fn signers_differ(&self) -> bool {
        let signers = &self.witness.signers;
        signers.len() == self.shape.signers()
            && signers.iter().all(|signer| *signer < self.shape.members())
            && signers.iter().zip(signers.iter().skip(1)).all(|(one, next)| one < next)
    }

    fn signed(&self, kind: Kind, message: Fr, signatures: &[Signature]) -> bool {
        self.witness.signers.len() == signatures.len()
            && self.witness.signers.iter().zip(signatures).all(|(signer, signature)| {
                self.public.members.get(*signer).is_some_and(|key| self.signed_by(key, kind, message, signature))
            })
    }

    fn signed_by(&self, key: &PublicKey, kind: Kind, message: Fr, signature: &Signature) -> bool {
        key.verify(self.public.domain, kind, message, signature).is_ok()
    }

    fn unlisted(&self, owner: Owner, path: &GapPath) -> bool {
        let tag = field_from_u128(owner.tag().number());
        let inside = fits(tag - path.low - Fr::ONE, 120) && fits(path.high - tag - Fr::ONE, 120);
        let root = path
            .children
            .iter()
            .try_fold(h2([path.low, path.high]), |node, children| children.contains(&node).then(|| h8(*children)));
        inside && root == Some(self.public.sanctions)
    }
}
