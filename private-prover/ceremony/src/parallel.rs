//! Work on all processors.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// How many points or variables one piece of work has: some milliseconds, so that threads end together.
pub(crate) const PIECE: usize = 256;

/// Does the work for each item on all processors. Results are in the order of the items.
pub(crate) fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let run = || {
            let mut done = vec![];
            while let Some((at, item)) = next() {
                done.push((at, work(item)));
            }
            done
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no work panics")).collect()
    });
    results.sort_unstable_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_items() {
        let squares = in_parallel((0..1000_u32).collect(), |item| item * item);
        assert!(squares.iter().zip(0..).all(|(square, item): (&u32, u32)| *square == item * item));
        assert_eq!(squares.len(), 1000);
    }
}
