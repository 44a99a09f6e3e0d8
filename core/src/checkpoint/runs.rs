//! A segment in runs of a fixed number of leaves, so that the path of one leaf follows from its run and the roots of the
//! others: an authority that shows a leaf reads one run, and not gigabytes.
//!
//! ```text
//!  root ─ … ─ roots of runs      kept in an index beside the segment
//!              └─ … ─ leaves     read from the segment, one run at a time
//! ```
//! A run has a power of two of leaves, and only the last one can be shorter, so the root of a run is a node of the
//! segment's tree.

use std::io::{Read, Result};

use super::leaf::Leaf;
use super::segment::{MAGIC, Segment, SegmentEntry};
use super::stream::{read_item, read_magic};
use super::tree::LeafPath;
use crate::Digest;
use crate::merkle::{merkle_leaf, node};

/// The leaves of a run. More make an index smaller and each read longer: the largest leaves, payouts, are 22 kB.
pub const RUN_LEAVES: usize = 256;

/// The bytes of a segment's stream before its first entry.
pub const SEGMENT_HEADER_BYTES: u64 = MAGIC.len() as u64;

impl Segment {
    /// Reads an archived segment to its end, and hands on each leaf with the bytes that its entry takes in the stream.
    ///
    /// # Errors
    /// Those of the reader and of `take`; `InvalidData` or `UnexpectedEof` if the bytes are no segment.
    pub fn read_leaves(reader: &mut impl Read, mut take: impl FnMut(Leaf, u64) -> Result<()>) -> Result<()> {
        read_magic(reader, MAGIC)?;
        let mut item = Vec::new();
        while let Some(entry) = read_item::<SegmentEntry>(reader, &mut item)? {
            take(entry.leaf(), length_of(&item))?;
        }
        Ok(())
    }

    /// Reads the leaves of one run: `reader` has the entries of this run and nothing else.
    ///
    /// # Errors
    /// Those of the reader; `InvalidData` or `UnexpectedEof` if the bytes are no entries.
    pub fn read_run(reader: &mut impl Read) -> Result<Vec<Leaf>> {
        let (mut leaves, mut item) = (Vec::new(), Vec::new());
        while let Some(entry) = read_item::<SegmentEntry>(reader, &mut item)? {
            leaves.push(entry.leaf());
        }
        Ok(leaves)
    }
}

/// An item of a stream stands behind its length.
fn length_of(item: &[u8]) -> u64 {
    u64::try_from(item.len()).unwrap_or(u64::MAX).saturating_add(4)
}

/// All nodes of a tree, or of the upper part of one.
#[derive(Clone, Debug)]
pub struct TreeLevels {
    /// From the leaves, or the roots of the runs, up.
    levels: Vec<Vec<Digest>>,
}

impl TreeLevels {
    /// The tree over leaves. `None` if there are none.
    #[must_use]
    pub fn of_leaves(leaves: &[Leaf]) -> Option<Self> {
        Self::of_roots(leaves.iter().map(|leaf| merkle_leaf(&leaf.encoded())).collect())
    }

    /// The tree over the roots of runs. `None` if there are none.
    #[must_use]
    pub fn of_roots(roots: Vec<Digest>) -> Option<Self> {
        let mut levels = Vec::new();
        let mut level = roots;
        level.first()?;
        while level.len() > 1 {
            let above = level.chunks(2).map(|pair| match pair {
                [left, right] => node(left, right),
                // A node without right sibling is carried up.
                alone => alone.first().copied().unwrap_or_default(),
            });
            let above = above.collect();
            levels.push(std::mem::replace(&mut level, above));
        }
        levels.push(level);
        Some(Self { levels })
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.levels.last().and_then(|level| level.first()).copied().unwrap_or_default()
    }

    /// Extends the path of something below the node at `position` to this tree's root.
    pub fn extend(&self, path: &mut LeafPath, mut position: usize) {
        for level in &self.levels {
            if let Some(sibling) = level.get(position ^ 1).filter(|_| level.len() > 1) {
                path.push(*sibling, position & 1 == 1);
            }
            position /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::SequenceNumber;
    use crate::identity::AccountId;

    #[test]
    fn the_path_by_runs_is_the_path_in_the_segment() {
        for count in [1, 2, 3, 255, 256, 257, 511, 512, 513, 769, 1_025, 1_300] {
            let entry = |number| SegmentEntry::Void { account: AccountId([1; 32]), sequence: SequenceNumber(number) };
            let segment = Segment { entries: (0..count).map(entry).collect() };
            let leaves: Vec<Leaf> = segment.entries.iter().map(SegmentEntry::leaf).collect();
            let runs: Vec<TreeLevels> =
                leaves.chunks(RUN_LEAVES).map(|run| TreeLevels::of_leaves(run).unwrap()).collect();
            let above = TreeLevels::of_roots(runs.iter().map(TreeLevels::root).collect()).unwrap();
            for at in (0..leaves.len()).step_by(41).chain([leaves.len() - 1]) {
                let mut path = LeafPath::default();
                runs[at / RUN_LEAVES].extend(&mut path, at % RUN_LEAVES);
                above.extend(&mut path, at / RUN_LEAVES);
                assert_eq!(leaves[at].root(&path), Some(above.root()));
                assert_eq!(Some(path), segment.path(&leaves[at]), "leaf {at} of {count}");
            }
        }
        assert!(TreeLevels::of_leaves(&[]).is_none());
    }

    #[test]
    fn leaves_are_read_with_their_places_and_by_run() {
        let entry = |number| SegmentEntry::Void { account: AccountId([1; 32]), sequence: SequenceNumber(number) };
        let segment = Segment { entries: (0..5).map(entry).collect() };
        let (mut bytes, mut ends, mut end) = (Vec::new(), Vec::new(), SEGMENT_HEADER_BYTES);
        segment.write(&mut bytes).unwrap();
        Segment::read_leaves(&mut bytes.as_slice(), |_, length| {
            end += length;
            ends.push(usize::try_from(end).unwrap());
            Ok(())
        })
        .unwrap();
        assert_eq!(ends.last(), Some(&bytes.len()));
        let run = Segment::read_run(&mut &bytes[ends[1]..ends[3]]).unwrap();
        assert_eq!(run, [segment.entries[2].leaf(), segment.entries[3].leaf()]);
        assert!(Segment::read_run(&mut &bytes[ends[1]..ends[3] - 1]).is_err());
    }
}
