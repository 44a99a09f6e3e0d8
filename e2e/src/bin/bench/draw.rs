//! Draws who pays whom: all accounts equally often, or a few much more often than most (Zipf).

use fastpay_core::{AccountId, ShardLayout};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The seed, the same for every run, so that every run draws the same payments.
const SEED: u64 = 20_200_325;

/// Draws numbers from 0 with probabilities in proportion to 1 / (number + 1)^exponent.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// The probability that a number is at most the index.
    cumulative: Vec<f64>,
}

impl Zipf {
    /// An exponent of 0 gives all numbers the same probability.
    pub fn new(count: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=count)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|value| *value /= sum);
        Self { cumulative }
    }

    pub fn draw(&self, rng: &mut StdRng) -> usize {
        let point: f64 = rng.random();
        // The last value is 1 except for rounding.
        self.cumulative.partition_point(|value| *value <= point).min(self.cumulative.len().saturating_sub(1))
    }
}

/// A payment's sender and recipient, as numbers of accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub sender: usize,
    pub recipient: usize,
}

/// Payments in which each account pays another one once in each round.
pub fn rounds(accounts: usize, rounds: usize) -> Vec<Pair> {
    let recipient = |sender: usize, round: usize| (sender * 31 + 7 + round * 101) % accounts.max(1);
    let pair = |round| move |sender| Pair { sender, recipient: recipient(sender, round) };
    (0..rounds).flat_map(|round| (0..accounts).map(pair(round))).collect()
}

/// How senders and recipients are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// The exponent of the distribution; 0 draws all accounts equally often.
    pub zipf_exponent: f64,
    /// A sender's payments go one after the other, so one who had a tenth of all would measure its own
    /// round trips instead of the shard: drawn again above this number.
    pub payments_per_sender_max: usize,
    /// The share of payments whose recipient is in another shard; `None` leaves it to chance.
    pub cross_shard: Option<f64>,
}

impl Mix {
    /// Draws this many payments among these accounts, in order.
    pub fn draw(&self, count: usize, accounts: &[AccountId], layout: ShardLayout) -> Vec<Pair> {
        let shards: Vec<u32> = accounts.iter().map(|id| layout.shard_of(id).0).collect();
        self.draw_in(count, &shards, &mut StdRng::seed_from_u64(SEED))
    }

    fn draw_in(&self, count: usize, shards: &[u32], rng: &mut StdRng) -> Vec<Pair> {
        let zipf = Zipf::new(shards.len(), self.zipf_exponent);
        let mut sent = vec![0_usize; shards.len()];
        let mut pairs = Vec::with_capacity(count);
        while pairs.len() < count {
            let sender = zipf.draw(rng);
            let crosses = self.cross_shard.map(|share| rng.random_bool(share));
            let Some(sent) = sent.get_mut(sender).filter(|sent| **sent < self.payments_per_sender_max) else {
                continue;
            };
            *sent += 1;
            pairs.push(Pair { sender, recipient: recipient(sender, crosses, shards, &zipf, rng) });
        }
        pairs
    }
}

fn recipient(sender: usize, crosses: Option<bool>, shards: &[u32], zipf: &Zipf, rng: &mut StdRng) -> usize {
    loop {
        // In reverse order, so that the most frequent senders are not the most frequent recipients.
        let recipient = shards.len() - 1 - zipf.draw(rng);
        let fits = crosses.is_none_or(|crosses| crosses == (shards.get(recipient) != shards.get(sender)));
        if recipient != sender && fits {
            return recipient;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: usize, exponent: f64, draws: usize) -> Vec<usize> {
        let (zipf, mut rng) = (Zipf::new(count, exponent), StdRng::seed_from_u64(SEED));
        let mut counts = vec![0; count];
        (0..draws).for_each(|_| counts[zipf.draw(&mut rng)] += 1);
        counts
    }

    #[test]
    fn zipf_has_the_shares_of_its_definition() {
        for exponent in [0.0, 0.5, 1.0, 1.5] {
            let (count, draws) = (50_usize, 200_000_usize);
            let sum: f64 = (1..=count).map(|rank| (rank as f64).powf(-exponent)).sum();
            for (index, found) in counts(count, exponent, draws).into_iter().enumerate() {
                let share = ((index + 1) as f64).powf(-exponent) / sum;
                let expected = share * draws as f64;
                // Five standard deviations of a binomial count.
                let allowed = 5.0 * (draws as f64 * share * (1.0 - share)).sqrt();
                assert!(
                    (found as f64 - expected).abs() < allowed,
                    "{exponent} {index} {found} {expected} (seed {SEED})"
                );
            }
        }
    }

    #[test]
    fn nobody_pays_himself_or_more_often_than_allowed_and_the_share_across_shards_is_met() {
        let shards: Vec<u32> = (0..64).map(|number| number % 2).collect();
        for (share, expected) in [(Some(0.0), 0..=0), (Some(1.0), 4000..=4000), (Some(0.25), 850..=1150)] {
            let mix = Mix { zipf_exponent: 1.0, payments_per_sender_max: 100, cross_shard: share };
            let pairs = mix.draw_in(4000, &shards, &mut StdRng::seed_from_u64(SEED));
            assert_eq!(pairs.len(), 4000);
            let crossing = pairs.iter().filter(|pair| shards[pair.sender] != shards[pair.recipient]).count();
            assert!(expected.contains(&crossing), "{crossing} (seed {SEED})");
            for account in 0..64 {
                assert!(pairs.iter().filter(|pair| pair.sender == account).count() <= 100);
            }
            assert!(pairs.iter().all(|pair| pair.sender != pair.recipient));
        }
    }
}
