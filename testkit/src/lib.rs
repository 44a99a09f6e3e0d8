//! Builders and simulated committees for tests.
