//! The key-value store: namespaces, each with the one writer that the genesis names.

use fastpay_core::AccountId;
use fastpay_ledger_statement::{Condition, Entry, Key, Namespace, Outcome, Rejection, StateKey, Value, Version};

use crate::draft::Draft;

impl Draft<'_> {
    /// GET, for anyone.
    pub(crate) fn look_up(&self, namespace: &Namespace, key: &Key) -> Result<Outcome, Rejection> {
        self.writer(namespace)?;
        let stored = self.state.get(&StateKey::Stored(namespace.clone(), key.clone()));
        Ok(stored.map_or(Outcome::Missing, |Entry { version, value }| Outcome::Found { version, value }))
    }

    /// PUT, or DELETE without a value. A condition that does not hold is an outcome: it uses its number up.
    pub(crate) fn write(
        &mut self,
        signer: AccountId,
        namespace: &Namespace,
        key: &Key,
        condition: Condition,
        value: Option<&Value>,
    ) -> Result<Outcome, Rejection> {
        let writer = self.writer(namespace)?;
        if signer != writer {
            return Err(Rejection::WrongWriter(writer));
        }
        let responsible = self.layout.partition().of_value(namespace, key);
        if responsible != self.layout.us() {
            return Err(Rejection::OtherShard(responsible));
        }
        let place = StateKey::Stored(namespace.clone(), key.clone());
        let now = self.state.get(&place).map(|entry: Entry| entry.version);
        let holds = match condition {
            Condition::Always => true,
            Condition::Absent => now.is_none(),
            Condition::Version(version) => now == Some(version),
        };
        if !holds {
            return Ok(Outcome::ConditionFailed(now));
        }
        // Height and position never return, so neither does a version, also after the value was deleted.
        let version = Version { height: self.moment.height, position: self.writes };
        self.writes = self.writes.checked_add(1).expect("a height has fewer than 2^32 writes");
        match value {
            Some(value) => self.state.put(place, &Entry { version, value: value.clone() }),
            None => self.state.tree.remove(&place),
        }
        Ok(Outcome::Written(version))
    }

    fn writer(&self, namespace: &Namespace) -> Result<AccountId, Rejection> {
        self.layout.genesis().namespaces.get(namespace).copied().ok_or(Rejection::UnknownNamespace)
    }
}
