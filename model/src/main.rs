//! The command line. Without options it checks all rules in the bounded settings.

use std::process::ExitCode;

use fastpay_model::check::{Report, explore};
use fastpay_model::mutants::{COVERED, MUTANTS};
use fastpay_model::rules::{Rule, Rules};
use fastpay_model::setting::{BOUNDED, FULL, Setting};

const USAGE: &str = "\
fastpay-model [OPTION]...
  --setting NAME   explore this setting; may be repeated. Default: those of `make model`
  --full           explore all settings
  --without RULE   leave this rule out; may be repeated. Default setting: where that breaks a claim
  --threads N      default: 1, which finds the shortest counterexample
  --list           list rules and settings

The exit code is 0 if all claims hold, or, with --without, if one does not.";

struct Options {
    settings: Vec<Setting>,
    without: Vec<Rule>,
    threads: usize,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let rules = options.without.iter().fold(Rules::ALL, |rules, rule| rules.without(*rule));
    let mut breaks = false;
    for setting in &options.settings {
        let report = explore(setting, rules, options.threads);
        print(setting, &report);
        breaks |= report.broken.is_some() || options.without.is_empty() && !report.missed.is_empty();
    }
    if breaks == options.without.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let all = || BOUNDED.iter().chain(FULL);
    let (mut settings, mut without, mut threads) = (Vec::new(), Vec::new(), 1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--setting" => {
                let name = value()?;
                settings.push(*all().find(|one| one.name == name).ok_or(format!("there is no setting {name}"))?);
            }
            "--full" => settings.extend(all()),
            "--without" => {
                let name = value()?;
                without
                    .push(*Rule::ALL.iter().find(|one| one.name() == name).ok_or(format!("there is no rule {name}"))?);
            }
            "--threads" => threads = value()?.parse().map_err(|_| "--threads needs a number")?,
            "--list" => {
                Rule::ALL.iter().for_each(|rule| println!("{:20} {:9} {}", rule.name(), rule.place(), rule.text()));
                all().for_each(|setting| println!("{}", setting.name));
                return Ok(None);
            }
            _ => return Err(format!("there is no option {argument}")),
        }
    }
    if settings.is_empty() {
        let table = MUTANTS.iter().chain(COVERED);
        let of_mutant = table.filter(|mutant| !without.is_empty() && mutant.without == without);
        settings.extend(of_mutant.map(|mutant| mutant.setting));
    }
    if settings.is_empty() {
        settings.extend(BOUNDED);
    }
    Ok(Some(Options { settings, without, threads }))
}

fn print(setting: &Setting, report: &Report) {
    println!("{}: {report}", setting.name);
    for name in &report.missed {
        println!("  not {name}");
    }
    if let Some((_, story)) = &report.broken {
        story.iter().for_each(|action| println!("  {action:?}"));
    }
}
