//! Invalid configurations, files and keys: a clear message and an exit code, and nothing is written.

use std::path::Path;
use std::process::Command;

use fastpay_e2e::{Finished, Place, program, run};

use crate::scene::{build, key, standalone};

fn node(arguments: &[&str]) -> Finished {
    run(Command::new(program("fastpay-node").unwrap()).args(arguments)).unwrap()
}

fn assert_fails(done: &Finished, said: &str) {
    assert!(!done.status.success(), "`{}` succeeded", done.command);
    assert!(done.err.contains(said), "`{}` does not say {said:?}: {}", done.command, done.err);
    assert!(!done.err.contains("panicked"), "{}", done.err);
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn a_node_says_what_is_wrong_with_its_configuration() {
    let network = standalone("config", &[key(0).account()]);
    let authority = &network.authorities[0];
    let good = std::fs::read_to_string(authority.config()).unwrap();
    let try_config = |content: String, said: &str| {
        let path = authority.config().with_file_name("wrong.toml");
        std::fs::write(&path, content).unwrap();
        assert_fails(&node(&["run", "--config", &text(&path)]), said);
    };
    try_config(format!("colour = \"blue\"\n{good}"), "unknown field `colour`");
    try_config(good.replace("shards = 2", "shards = \"two\""), "shards");
    try_config(good.replace("shards = 2", "shards = 3"), "was created for");
    try_config(good.replace("listen =", "# listen ="), "missing field `listen`");
    try_config("not TOML at all".into(), "is invalid");
    assert_fails(&node(&["run", "--config", "/nowhere/authority.toml"]), "cannot read the configuration");
    assert_fails(&node(&["status", "--config", &text(authority.config())]), "check that the node runs");

    // A missing data folder is not created again: an authority that forgot its votes could vote twice.
    let empty = network.place().path("empty");
    let run = node(&["run", "--config", &text(authority.config()), "--data", &text(&empty)]);
    assert_fails(&run, "is not an authority's data folder");
    assert!(!empty.exists());
    // A configuration is not overwritten, and another authority's data folder not used.
    let other = network.authorities[1].data();
    assert_fails(&node(&["run", "--config", &text(authority.config()), "--data", &text(&other)]), "was created for");
    let genesis = network.place().path("genesis.json");
    let keys = text(authority.keys_folder());
    let (config, data) = (text(authority.config()), text(&network.place().path("more")));
    let ports = ["--listen", "127.0.0.1:1", "--http", "127.0.0.1:9"];
    let mut init = vec!["init", "--config", &config, "--keys", &keys, "--data", &data];
    let genesis = text(&genesis);
    init.extend(["--genesis", &genesis]);
    init.extend(ports);
    assert_fails(&node(&init), "already exists");
}

#[test]
fn keys_are_guarded() {
    let network = standalone("keys", &[key(0).account()]);
    let place = network.place();
    let (right, wrong) =
        (text(&place.write("right", "open sesame\n").unwrap()), text(&place.write("wrong", "open barley\n").unwrap()));
    let keys = text(&place.path("encrypted"));
    let made = node(&["keygen", "--keys", &keys, "--passphrase-file", &right]).success().unwrap();
    assert!(made.out.contains("votingKey") && made.out.contains("redemptionKey"), "{}", made.out);
    assert_fails(&node(&["keygen", "--keys", &keys, "--passphrase-file", &right]), "never overwritten");
    // Without a terminal and a passphrase it does not hang.
    assert_fails(&node(&["keygen", "--keys", &text(&place.path("other"))]), "passphrase");

    let (config, data, genesis) =
        (text(&place.path("authority.toml")), text(&place.path("data")), text(&place.path("genesis.json")));
    let mut init = vec!["init", "--config", &config, "--keys", &keys, "--data", &data, "--genesis", &genesis];
    init.extend(["--listen", "127.0.0.1:1", "--http", "127.0.0.1:9", "--passphrase-file"]);
    assert_fails(&node(&[&init[..], &[&wrong]].concat()), "wrong passphrase");
    assert!(!Path::new(&config).exists());
    node(&[&init[..], &[&right]].concat()).success().unwrap();
    assert_fails(&node(&["run", "--config", &config, "--passphrase-file", &wrong]), "wrong passphrase");
    assert_fails(&node(&["run", "--config", &config, "--passphrase-file", "/nowhere"]), "/nowhere");
    // The right contract, but not the keys of a member.
    assert_fails(&node(&["run", "--config", &config, "--passphrase-file", &right]), "is not a member of the committee");

    use std::os::unix::fs::PermissionsExt;
    let exposed = network.authorities[0].keys_folder().join("voting.key");
    std::fs::set_permissions(&exposed, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_fails(&node(&["run", "--config", &text(network.authorities[0].config())]), "chmod 600");
}

#[test]
fn relayer_and_wallet_say_what_is_wrong_with_theirs() {
    build();
    let place = Place::temporary("others").unwrap();
    let relayer = |arguments: &[&str]| run(Command::new(program("fastpay-relayer").unwrap()).args(arguments)).unwrap();
    assert_fails(&relayer(&["run", "--config", "/nowhere/relayer.toml"]), "cannot read the configuration");
    let config = text(&place.write("relayer.toml", "colour = 1\n").unwrap());
    assert_fails(&relayer(&["run", "--config", &config]), "is invalid");

    let home = text(&place.path("wallet"));
    let wallet = |arguments: &[&str]| {
        run(Command::new(program("fastpay").unwrap()).args(["--home", &home]).args(arguments)).unwrap()
    };
    let missing = wallet(&["audit"]);
    assert_fails(&missing, "fastpay init");
    assert_eq!(missing.status.code(), Some(3));
    let (right, wrong) = (text(&place.write("right", "a\n").unwrap()), text(&place.write("wrong", "b\n").unwrap()));
    wallet(&["keys", "new", "own", "--ed25519", "--passphrase-file", &right]).success().unwrap();
    std::fs::write(place.path("wallet/config.toml"), "colour = 1\n").unwrap();
    let unknown = wallet(&["pay", "own", "1", "--passphrase-file", &right]);
    assert_fails(&unknown, "colour");
    let secret = text(&place.write("secret", "12").unwrap());
    let import = wallet(&["keys", "import", "bad", "--ed25519", "--secret-file", &secret, "--passphrase-file", &wrong]);
    assert_eq!(import.status.code(), Some(4), "{}{}", import.out, import.err);
}
