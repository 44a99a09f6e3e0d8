-- Invoices. Amounts are 39 decimal digits, so that their order as text is their order as numbers. Times are in
-- milliseconds since 1970 where their name says so, otherwise in seconds.

CREATE TABLE service (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    -- When the wallet last looked for everything, as of the last change.
    looked_at_ms INTEGER NOT NULL,
    -- Length and CRC-32C of the journal that was taken over.
    journal_bytes INTEGER,
    journal_crc INTEGER
) STRICT;
INSERT INTO service (one, looked_at_ms) VALUES (1, 0);

CREATE TABLE invoice (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    reference TEXT NOT NULL UNIQUE,
    asset BLOB NOT NULL,
    amount TEXT NOT NULL,
    memo BLOB NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'open',
    -- Of its payments: how many, how many of the whole amount, and the sums of all and of those in time.
    payments INTEGER NOT NULL DEFAULT 0,
    whole INTEGER NOT NULL DEFAULT 0,
    received TEXT NOT NULL DEFAULT '0',
    in_time TEXT NOT NULL DEFAULT '0',
    -- 1 while payments came of which no event tells yet.
    is_untold INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX invoice_by_state ON invoice (state);
CREATE INDEX invoice_open ON invoice (expires_at) WHERE state = 'open';
CREATE INDEX invoice_untold ON invoice (number) WHERE is_untold = 1;

CREATE TABLE payment (
    number INTEGER PRIMARY KEY,
    invoice INTEGER REFERENCES invoice,
    sender BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    -- -1 for a payment that is not an output of a payout.
    output INTEGER NOT NULL,
    asset BLOB NOT NULL,
    amount TEXT NOT NULL,
    memo BLOB NOT NULL,
    received_at_ms INTEGER NOT NULL,
    after_ms INTEGER NOT NULL,
    UNIQUE (sender, sequence, output)
) STRICT;
CREATE INDEX payment_by_invoice ON payment (invoice);
CREATE INDEX payment_by_amount ON payment (invoice, amount DESC);

CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    invoice INTEGER NOT NULL REFERENCES invoice,
    state TEXT NOT NULL,
    looked_at_ms INTEGER NOT NULL,
    body TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Of the last attempt: delivered, failed or given_up.
    outcome TEXT,
    reason TEXT,
    -- Null once it was taken or given up.
    due_at_ms INTEGER
) STRICT;
CREATE INDEX event_by_invoice ON event (invoice);
CREATE INDEX event_due ON event (due_at_ms) WHERE due_at_ms IS NOT NULL;

-- What an earlier program moved to archive/: its payments never count again, and its references make no second invoice.
CREATE TABLE archived_payment (
    sender BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    output INTEGER NOT NULL,
    PRIMARY KEY (sender, sequence, output)
) STRICT, WITHOUT ROWID;
CREATE TABLE archived_invoice (
    reference TEXT PRIMARY KEY,
    id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
