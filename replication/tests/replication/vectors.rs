//! `vectors/replication.json`: a start, its name, and a frame of each kind. It is built here from fixed values and must
//! equal the file in the tree, so that a change of the format is seen.
//!
//! After a change that is meant: `UPDATE_VECTORS=1 cargo test --workspace --test replication vectors`.

use serde::{Deserialize, Serialize};

use crate::fixture::{SECRET, chain, open, start};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    authority_secret: String,
    start: String,
    start_id: String,
    stream: String,
    frames: Vec<Frame>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Frame {
    kind: String,
    encoding: String,
    tag: String,
}

#[test]
fn the_bytes_of_frames_are_those_of_the_vectors() {
    let frames = chain().into_iter().map(|(_, frame)| Frame {
        kind: format!("{:?}", frame.kind()).split(['(', ' ']).next().unwrap().to_lowercase(),
        encoding: hex::encode(frame.bytes()),
        tag: hex::encode(frame.tag().0),
    });
    let built = File {
        authority_secret: hex::encode(SECRET),
        start: hex::encode(borsh::to_vec(&start()).unwrap()),
        start_id: hex::encode(start().id().0),
        stream: start().stream(),
        frames: frames.collect(),
    };
    let path = "../vectors/replication.json";
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::write(path, serde_json::to_string_pretty(&built).unwrap() + "\n").unwrap();
    }
    let file: File = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(built, file);
    for frame in file.frames {
        let read = open(&hex::decode(&frame.encoding).unwrap()).unwrap();
        assert_eq!(hex::encode(read.tag().0), frame.tag);
    }
}
