//! The cases of sdk/test/unit/link.test.ts: both languages write and read the same links.

use super::*;
use fastpay_core::AccountKey;

const CONTRACT: &str = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
const BOB: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

fn bare() -> String {
    format!("fastpay:{BOB}@31337/{CONTRACT}")
}

fn to_bob() -> PaymentLink {
    let domain = Domain::new(31337, CONTRACT.parse().unwrap());
    PaymentLink::new(BOB.parse().unwrap(), &domain, Asset::ETHER)
}

fn read(text: &str) -> PaymentLink {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn links_are_written_and_read() {
    let check = |link: PaymentLink, text: String| {
        assert_eq!(link.to_string(), text);
        assert_eq!(read(&text), link);
        assert_eq!(link.check(), Ok(link));
    };
    check(to_bob(), bare());
    let token = Asset(PrimaryAddress::repeat_byte(0xab));
    let memo = Some(parse_memo("invoice 7 & 8").unwrap());
    check(
        PaymentLink { asset: token, amount: Some(Amount(25_000_000)), memo, ..to_bob() },
        format!(
            "{}?asset=0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB&amount=25000000&text=invoice%207%20%26%208",
            bare()
        ),
    );
    check(
        PaymentLink {
            memo: Some(Memo::repeat_byte(0xc0)),
            label: Some("Café ☕".into()),
            expires: Some(1_800_000_000),
            ..to_bob()
        },
        format!("{}?memo=0x{}&label=Caf%C3%A9%20%E2%98%95&expires=1800000000", bare(), "c0".repeat(32)),
    );
}

#[test]
fn a_link_behind_a_page_is_read_without_the_page() {
    let carol = AccountKey::ed25519([7; 32]).account();
    let link = PaymentLink { account: carol, amount: Some(Amount(1)), ..to_bob() };
    let web = link.behind(&"https://wallet.example/pay".parse().unwrap());
    assert!(web.starts_with("https://wallet.example/pay#fastpay:fp1"), "{web}");
    assert_eq!(read(&web), link);
    assert!(PaymentLink::is_claimed_by(&web) && PaymentLink::is_claimed_by("fastpay:nonsense"));
    assert!(!PaymentLink::is_claimed_by(BOB) && !PaymentLink::is_claimed_by("alice"));
}

#[test]
fn the_scheme_may_be_in_capitals_and_unknown_parameters_are_passed_over() {
    let text = format!("FASTPAY:{BOB}@31337/{}?colour=red&amount=5", CONTRACT.to_lowercase());
    assert_eq!(read(&text), PaymentLink { amount: Some(Amount(5)), ..to_bob() });
}

#[test]
fn a_memo_that_only_looks_like_text_keeps_its_bytes() {
    // A BOM, a lone continuation byte, a zero in the middle, a line feed.
    for digits in ["efbbbf41", "80", "410042", "0a"] {
        let memo: Memo = format!("0x{digits:0<64}").parse().unwrap();
        let link = PaymentLink { memo: Some(memo), ..to_bob() };
        assert_eq!(read(&link.to_string()).memo, Some(memo), "{digits}");
    }
}

#[test]
fn a_label_does_not_turn_the_text_around_it() {
    assert_eq!(read(&format!("{}?label=a%E2%80%AEb%0Ac", bare())).label.as_deref(), Some("a b c"));
    let long = read(&format!("{}?label={}", bare(), "x".repeat(80)));
    assert_eq!(long.label.unwrap().len(), LABEL_LENGTH_MAX);
}

#[test]
fn what_is_no_link_is_refused() {
    let bare = bare();
    let wrong = [
        format!("ethereum:{BOB}@31337/{CONTRACT}"),
        format!("fastpay:{BOB}/{CONTRACT}"),
        format!("fastpay:{BOB}@31337"),
        format!("fastpay:{BOB}@31337/{}", CONTRACT.replace("5FbDB", "5fbDB")),
        format!("fastpay:{BOB}@9999999999999999/{CONTRACT}"),
        format!("fastpay:{}@31337/{CONTRACT}", BOB.replace("70997970C", "70997970c")),
        format!("{bare}?amount=1.5"),
        format!("{bare}?amount=1e18"),
        format!("{bare}?amount=-1"),
        format!("{bare}?amount=+1"),
        format!("{bare}?amount=0"),
        format!("{bare}?amount=340282366920938463463374607431768211456"),
        format!("{bare}?asset=USDC"),
        format!("{bare}?memo=0x01"),
        format!("{bare}?text={}", "x".repeat(33)),
        format!("{bare}?text=a&memo=0x{}", "00".repeat(32)),
        format!("{bare}?amount=1&amount=2"),
        format!("{bare}?amount"),
        format!("{bare}?text=%E"),
        format!("{bare}?text=%FF"),
        format!("{bare}?req-escrow=1"),
        format!("{bare}?label={}", "x".repeat(LINK_LENGTH_MAX)),
        String::new(),
    ];
    for text in wrong {
        assert!(text.parse::<PaymentLink>().is_err(), "{text}");
    }
}

#[test]
fn a_request_that_nobody_could_read_back_is_refused() {
    assert!(PaymentLink { amount: Some(Amount(0)), ..to_bob() }.check().is_err());
    assert!(PaymentLink { label: Some("☕".repeat(400)), ..to_bob() }.check().is_err());
}

#[test]
fn a_label_that_payers_would_see_cut_is_refused_with_its_bound() {
    let labelled = |label: String| PaymentLink { label: Some(label), ..to_bob() }.check();
    assert_eq!(labelled("é".repeat(64)).unwrap().label.unwrap(), "é".repeat(64));
    // What nobody sees does not count.
    assert_eq!(labelled(format!("  {}\n", "x".repeat(64))).unwrap().label.unwrap(), "x".repeat(64));
    let refused = labelled("é".repeat(65)).unwrap_err().to_string();
    assert!(refused.contains("65 characters") && refused.contains("at most 64 are shown"), "{refused}");
}
