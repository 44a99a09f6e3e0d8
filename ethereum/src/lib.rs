//! Contract bindings, finalized-event reader and transaction sender.
