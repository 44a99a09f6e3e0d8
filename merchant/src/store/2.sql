-- Refunds: lists of what the owner's wallet is to pay back. A list never changes, and a line is on one list only.

CREATE TABLE refund_list (
    number INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    -- What was asked for, as JSON: the same again finds the list.
    request TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE refund (
    number INTEGER PRIMARY KEY,
    list INTEGER NOT NULL REFERENCES refund_list,
    -- The payment of which this goes back, to its sender.
    payment INTEGER NOT NULL REFERENCES payment,
    -- What the refund must carry. No other has it.
    memo BLOB NOT NULL UNIQUE,
    amount TEXT NOT NULL,
    -- Where the account's certified order paid it.
    paid_sequence INTEGER,
    paid_output INTEGER,
    paid_digest BLOB
) STRICT;
CREATE INDEX refund_by_list ON refund (list);
CREATE INDEX refund_by_payment ON refund (payment);
CREATE INDEX refund_open ON refund (number) WHERE paid_digest IS NULL;

-- The number of the account's next order to look for refunds in.
ALTER TABLE service ADD COLUMN sent_next INTEGER NOT NULL DEFAULT 0;
