//! Client library and the fastpay command.
