/** Validates a caller's payment or redemption at run time, with errors that name the expected type. */

import { accountOf } from "../accounts.js";
import { isHex, lower } from "../bytes.js";
import type { PayIntent, RedeemIntent } from "../client.js";
import { FastPayError } from "../errors.js";
import { NO_MEMO } from "../memo.js";
import type { Signer } from "../signers.js";
import type { Transfer } from "../transfer.js";
import type { Intent } from "./send.js";

/** A field of an intent: a description of the expected value, and its check. */
interface Field {
  readonly expected: string;
  readonly is: (value: unknown) => boolean;
  readonly isOptional?: boolean;
}

const isAmount = (value: unknown): boolean => typeof value === "bigint";
const AMOUNT = 'a bigint in the asset\'s smallest unit, such as parseAmount("1.5", 18)';
const isAccount = (value: unknown): boolean => {
  try {
    accountOf(value as string);
    return true;
  } catch {
    return false;
  }
};
const ASSET: Field = { expected: "ETHER, or the address of a token", is: (value) => isHex(value, 20) };
const MEMO: Field = { expected: 'the 32 bytes of encodeMemo("…")', is: (value) => isHex(value, 32), isOptional: true };

const PAYMENT: Readonly<Record<keyof PayIntent, Field>> = {
  recipient: { expected: "an account: 0x…, with a right checksum where it has one, or fp1…", is: isAccount },
  asset: ASSET,
  amount: { expected: AMOUNT, is: isAmount },
  memo: MEMO,
  expires: { expected: "a bigint of seconds since 1970", is: isAmount, isOptional: true },
};

const REDEMPTION: Readonly<Record<keyof RedeemIntent, Field>> = {
  recipient: { expected: "an Ethereum address", is: (value) => isHex(value, 20) },
  asset: ASSET,
  amount: { expected: AMOUNT, is: isAmount },
  fee: { expected: AMOUNT, is: isAmount, isOptional: true },
  memo: MEMO,
};

/** Validates a payment. Throws `invalid-argument`. */
export function paymentIntent(signer: Signer, intent: PayIntent): Intent {
  check("pay", intent, PAYMENT);
  const { recipient, asset, amount, memo = NO_MEMO } = intent;
  const fields = { sender: signer.account, recipient: accountOf(recipient), asset: lower(asset), amount, memo: lower(memo) };
  return (sequence): Transfer => ({ type: "payment", ...fields, sequence });
}

/** Validates a redemption. Throws `invalid-argument`. */
export function redemptionIntent(signer: Signer, intent: RedeemIntent): Intent {
  check("redeem", intent, REDEMPTION);
  const { recipient, asset, amount, fee = 0n, memo = NO_MEMO } = intent;
  const fields = { recipient: lower(recipient), asset: lower(asset), amount, fee, memo: lower(memo) };
  return (sequence): Transfer => ({ type: "redemption", sender: signer.account, ...fields, sequence });
}

function check(method: string, given: object, fields: Readonly<Record<string, Field>>): void {
  const values = new Map(Object.entries(given ?? {}));
  const wrong = Object.entries(fields).flatMap(([name, { expected, is, isOptional = false }]) => {
    const value = values.get(name);
    if (value === undefined) return isOptional ? [] : [`${name} is missing: give ${expected}`];
    return is(value) ? [] : [`${name} is not ${expected}`];
  });
  const unknown = [...values.keys()].filter((name) => !Object.hasOwn(fields, name));
  if (unknown.length > 0) wrong.push(`nothing is known of ${unknown.join(", ")}`);
  if (wrong.length === 0) return;
  const action = `give { ${Object.keys(fields).join(", ")} }; nothing was signed`;
  throw new FastPayError("invalid-argument", `${method}: ${wrong.join("; ")}`, action, { details: { method, wrong } });
}
