//! Which folder may vote alone.

use fastpay_replication::{FolderError, MachineId, Mode};

use crate::fixture::{FOUNDER, SECOND, THIRD, start};
use crate::machines::Shard;

#[test]
fn a_folder_of_three_machines_does_not_run_alone() {
    let joined = Mode::default().join(FOUNDER, start()).unwrap();
    assert_eq!(Mode::default().may_run_alone(), Ok(()));
    assert_eq!(joined.may_run_alone(), Err(FolderError::Replicated));
    assert_eq!(joined.join(FOUNDER, start()), Err(FolderError::Replicated));
    let stranger = MachineId([4; 16]);
    assert_eq!(Mode::default().join(stranger, start()), Err(FolderError::NotNamed(stranger)));
    let read: Mode = borsh::from_slice(&borsh::to_vec(&joined).unwrap()).unwrap();
    assert_eq!(read, joined);
}

#[test]
fn only_the_owner_that_sealed_the_stream_goes_on_alone() {
    let sealed = Shard::sealed();
    let of = |machine| Mode::default().join(machine, start()).unwrap();
    let left = of(FOUNDER).leave(&sealed).unwrap();
    assert_eq!(left, Mode::Left { seal: sealed.tag() });
    assert_eq!(left.may_run_alone(), Ok(()));
    for other in [SECOND, THIRD] {
        assert_eq!(of(other).leave(&sealed), Err(FolderError::NotSealed));
    }
    let mut later = start();
    later.salt += 1;
    let rejoined = Mode::default().join(FOUNDER, later).unwrap();
    assert_eq!(rejoined.leave(&sealed), Err(FolderError::NotSealed));
    assert_eq!(Mode::default().leave(&sealed), Err(FolderError::Local));
    assert!(left.join(FOUNDER, start()).is_ok(), "it may be joined again, with another start");
}
