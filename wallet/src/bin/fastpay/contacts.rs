//! `contacts`: the address book.

use clap::Subcommand;
use fastpay_core::AccountId;
use fastpay_wallet::WalletError;
use fastpay_wallet::folder::Contact;
use serde_json::json;

use crate::context::Context;
use crate::output::Report;

/// The address book.
#[derive(Debug, Subcommand)]
pub enum ContactsCommand {
    /// Add a name for an account. Every command accepts it in place of the account.
    Add {
        /// The contact's name.
        name: String,
        /// The account (fp1… or 0x…).
        account: String,
    },
    /// List the contacts.
    List,
    /// Remove a contact.
    Remove {
        /// The contact's name.
        name: String,
    },
}

pub fn contacts(context: &Context, command: ContactsCommand) -> Result<Report, WalletError> {
    let contacts = context.folder.contacts();
    match command {
        ContactsCommand::Add { name, account } => {
            context.folder.create()?;
            let account = account.parse::<AccountId>().map_err(|error| WalletError::Argument(error.to_string()))?;
            Ok(contact_report(&contacts.add(&name, account)?))
        }
        ContactsCommand::List => {
            let entries = contacts.list()?;
            let lines: Vec<_> = entries.iter().map(contact_line).collect();
            let text = if lines.is_empty() {
                "no contacts yet; add one with `fastpay contacts add`".into()
            } else {
                lines.join("\n")
            };
            Ok(Report::new(json!({ "contacts": entries }), text))
        }
        ContactsCommand::Remove { name } => Ok(contact_report(&contacts.remove(&name)?)),
    }
}

fn contact_line(contact: &Contact) -> String {
    format!("{:16} {}", contact.name, contact.account)
}

fn contact_report(contact: &Contact) -> Report {
    Report::new(json!(contact), contact_line(contact))
}
