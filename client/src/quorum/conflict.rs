//! Orders of one account that compete for one number, because two copies of a wallet signed one each: which authority
//! holds which order, and which order can still reach a quorum. Pure counting.
//!
//! An authority that voted for an order votes for no other order with that number [FP §4.2]. An order can therefore
//! get the votes of its supporters and of the authorities without a vote. If no order can reach a quorum that way, the
//! account is stuck [FP §5] until the contract has decided: [`super::unlock`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fastpay_core::{AuthorityName, Committee, Digest, Transfer, VerifiedOrder};
use serde::Serialize;

use super::short;

/// Orders that compete for a number, with their known votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderConflict {
    members: BTreeSet<AuthorityName>,
    quorum: usize,
    rivals: BTreeMap<Digest, Rival>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rival {
    order: VerifiedOrder,
    holders: BTreeSet<AuthorityName>,
}

/// One of the orders, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConflictingOrder {
    /// The transfer that it orders.
    pub transfer: Transfer,
    /// The authorities that are locked on it.
    pub holders: Vec<AuthorityName>,
    /// The number of votes that it can still reach.
    pub reach: usize,
}

impl OrderConflict {
    /// A conflict without orders, at this committee.
    #[must_use]
    pub fn new(committee: &Committee) -> Self {
        let members = committee.members().iter().map(|member| member.name).collect();
        Self { members, quorum: committee.quorum(), rivals: BTreeMap::new() }
    }

    /// Adds an order, even if no authority is locked on it yet.
    pub fn enter(&mut self, order: &VerifiedOrder) {
        let rival = || Rival { order: order.clone(), holders: BTreeSet::new() };
        self.rivals.entry(order.digest()).or_insert_with(rival);
    }

    /// Notes that an authority is locked on an order.
    pub fn hold(&mut self, order: &VerifiedOrder, authority: AuthorityName) {
        self.enter(order);
        if let Some(rival) = self.rivals.get_mut(&order.digest()) {
            rival.holders.insert(authority);
        }
    }

    /// Adds the orders and holders of another conflict over the same number.
    pub fn merge(&mut self, other: &Self) {
        for rival in other.rivals.values() {
            self.enter(&rival.order);
            rival.holders.iter().for_each(|holder| self.hold(&rival.order, *holder));
        }
    }

    /// The number of votes that an order can still reach.
    fn reach(&self, rival: &Rival) -> usize {
        let others = self.rivals.values().filter(|other| other.order.digest() != rival.order.digest());
        let lost: BTreeSet<_> = others.flat_map(|other| &other.holders).collect();
        self.members.iter().filter(|name| rival.holders.contains(*name) || !lost.contains(name)).count()
    }

    /// The order to finish: among those that can still reach a quorum, the one that most authorities hold. Ties go to
    /// the lowest digest, so that all copies of the wallet choose the same. `None` if no order can reach a quorum.
    #[must_use]
    pub fn leader(&self) -> Option<&VerifiedOrder> {
        let winnable = self.rivals.values().filter(|rival| self.reach(rival) >= self.quorum);
        let leader = winnable.min_by_key(|rival| (std::cmp::Reverse(rival.holders.len()), rival.order.digest()));
        leader.map(|rival| &rival.order)
    }

    /// Any of the orders.
    #[must_use]
    pub fn any(&self) -> Option<&VerifiedOrder> {
        self.rivals.values().next().map(|rival| &rival.order)
    }

    /// All orders, the one that most authorities hold first.
    #[must_use]
    pub fn contenders(&self) -> Vec<ConflictingOrder> {
        let mut rivals: Vec<_> = self.rivals.values().collect();
        rivals.sort_by_key(|rival| (std::cmp::Reverse(rival.holders.len()), rival.order.digest()));
        let contender = |rival: &Rival| ConflictingOrder {
            transfer: rival.order.transfer().clone(),
            holders: rival.holders.iter().copied().collect(),
            reach: self.reach(rival),
        };
        rivals.into_iter().map(contender).collect()
    }
}

impl fmt::Display for OrderConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contenders = self.contenders();
        if let Some(ConflictingOrder { transfer, .. }) = contenders.first() {
            let (account, sequence) = (transfer.sender(), transfer.sequence());
            write!(f, "account {account} has {} orders with sequence number {sequence}", contenders.len())?;
        }
        write!(f, ", signed with the same key by copies of this wallet: ")?;
        let (size, quorum) = (self.members.len(), self.quorum);
        for ConflictingOrder { transfer, holders, reach } in &contenders {
            let (what, to) = match transfer {
                Transfer::Payment(payment) => ("pays", payment.recipient.to_string()),
                Transfer::Redemption(redemption) => ("redeems", redemption.recipient.to_string()),
                Transfer::Payout(payout) => ("pays", format!("{} recipients", payout.outputs.len())),
            };
            let names: Vec<_> = holders.iter().map(short).collect();
            let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
            let (amount, asset) = (transfer.amount(), transfer.asset());
            write!(
                f,
                "one {what} {amount} of {asset} (smallest unit) to {to}, locked at {} of {size} authorities",
                holders.len()
            )?;
            write!(f, "{names}, and can get {reach} of the {quorum} votes that it needs; ")?;
        }
        match self.leader() {
            Some(_) => write!(
                f,
                "one can still be finished when authorities that do not answer now do. Stop the other copy, then run \
                 `fastpay resume`"
            ),
            None => write!(
                f,
                "so, as these authorities say, none can get its quorum any more. The account can still receive. Stop the other \
                 copy, then run `fastpay unlock`: the contract decides, and the account can send again. A committee without \
                 Ethereum cannot unlock it"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_testkit::{TestAccount, TestCommittee, payment};

    struct Case {
        committee: TestCommittee,
        orders: Vec<VerifiedOrder>,
    }

    /// Three orders for one number, by digest.
    fn case(size: usize) -> Case {
        let committee = TestCommittee::new(size);
        let (alice, bob) = (TestAccount::numbered(0), TestAccount::numbered(1));
        let order = |amount| {
            let order = alice.sign(&committee.domain, Transfer::Payment(payment(alice.id(), bob.id(), amount, 0)));
            committee.verified(&order)
        };
        let mut orders: Vec<_> = [5, 6, 7].map(order).into();
        orders.sort_by_key(VerifiedOrder::digest);
        Case { committee, orders }
    }

    /// Checks which order leads, and how many votes each can reach, if `held` authorities hold each.
    fn check(size: usize, held: &[usize], leader: Option<usize>, reach: &[usize]) {
        let Case { committee, orders } = case(size);
        let mut conflict = OrderConflict::new(&committee.committee);
        let mut members = committee.committee.members().iter();
        for (order, count) in orders.iter().zip(held) {
            conflict.enter(order);
            members.by_ref().take(*count).for_each(|member| conflict.hold(order, member.name));
        }
        let expected = leader.map(|index| orders[index].digest());
        assert_eq!(conflict.leader().map(VerifiedOrder::digest), expected, "{held:?}");
        let mut found: Vec<_> = conflict.contenders();
        found.sort_by_key(|contender| orders.iter().position(|order| *order.transfer() == contender.transfer).unwrap());
        assert_eq!(found.iter().map(|c| c.reach).collect::<Vec<_>>(), reach, "{held:?}");
    }

    #[test]
    fn an_authority_that_holds_two_orders_counts_for_both() {
        let Case { committee, orders } = case(4);
        let mut conflict = OrderConflict::new(&committee.committee);
        let names: Vec<_> = committee.committee.members().iter().map(|member| member.name).collect();
        for (order, holders) in [(0, [0, 1, 3]), (1, [2, 3, 3])] {
            holders.iter().for_each(|holder: &usize| conflict.hold(&orders[order], names[*holder]));
        }
        assert_eq!(conflict.leader(), Some(&orders[0]));
        assert!(conflict.to_string().contains("can still be finished"), "{conflict}");
        conflict.hold(&orders[2], names[0]);
        conflict.hold(&orders[2], names[1]);
        assert!(conflict.leader().is_some(), "those who hold two may vote for either");
    }

    #[test]
    fn the_order_that_most_hold_leads_as_long_as_it_can_win() {
        check(4, &[3, 1], Some(0), &[3, 1]);
        check(4, &[1, 3], Some(1), &[1, 3]);
        check(4, &[1, 2], Some(1), &[2, 3]);
        // A tie: every copy of the wallet chooses the lower digest.
        check(4, &[1, 1], Some(0), &[3, 3]);
        check(4, &[0, 0], Some(0), &[4, 4]);
        check(4, &[2, 2], None, &[2, 2]);
        check(4, &[2, 1, 1], None, &[2, 1, 1]);
        check(7, &[3, 2], Some(0), &[5, 4]);
        check(7, &[3, 3, 1], None, &[3, 3, 1]);
        check(10, &[2, 3], Some(1), &[7, 8]);
        check(10, &[3, 3], Some(0), &[7, 7]);
    }
}
