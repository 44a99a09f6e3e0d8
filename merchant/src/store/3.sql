-- What a customer sees of an invoice on its checkout page.
ALTER TABLE invoice ADD COLUMN description TEXT;
-- JSON; null where the invoice has none.
ALTER TABLE invoice ADD COLUMN items TEXT;
ALTER TABLE invoice ADD COLUMN return_url TEXT;
-- In the address of the page. Null for an invoice that is older than these columns: it has no page.
ALTER TABLE invoice ADD COLUMN checkout_key TEXT;
CREATE UNIQUE INDEX invoice_by_checkout_key ON invoice (checkout_key);

-- Payouts to Ethereum: what the owner's wallet is to redeem.
CREATE TABLE payout (
    number INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    asset BLOB NOT NULL,
    amount TEXT NOT NULL,
    recipient BLOB NOT NULL,
    -- What the owner agrees to pay the relayer, of the amount.
    fee TEXT NOT NULL,
    -- What the order must carry. No other has it.
    memo BLOB NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL,
    -- Once the account's certified order redeems it.
    sequence INTEGER,
    digest BLOB,
    -- How far the order is on Ethereum, and whether that is final.
    ethereum TEXT,
    is_done INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX payout_open ON payout (number) WHERE is_done = 0;
