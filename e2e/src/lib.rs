//! Real processes on a real anvil: the demo, the localnet, the bench and end-to-end tests.
