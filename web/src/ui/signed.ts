/**
 * The fields that an owner signs. Labels and order are those of docs/erc7730, which wallets use. Wallets show accounts
 * and memos as the signed 32 bytes, so the fields contain those as well.
 */

import { decodeMemo, formatAccount, NO_MEMO, type AccountId, type Hex, type Output, type Transfer } from "@fastpay/sdk";
import { getAddress } from "viem";

import type { ShownAsset } from "../data/queries";
import { money } from "./words";

/** A signed field. */
export interface SignedField {
  readonly label: string;
  /** The readable text. */
  readonly text: string;
  /** The wallet's text, if it differs. */
  readonly raw?: string;
}

/** The fields of an order. Those of a payout's outputs are in `outputFields`. */
export function orderFields(transfer: Transfer, info: ShownAsset): SignedField[] {
  const { asset, sender, sequence } = transfer;
  const text = (units: bigint): string => money(units, info);
  const token: SignedField = { label: "Token", text: info.label, raw: getAddress(asset) };
  const end = [accountField("From", sender), { label: "Order number", text: sequence.toString() }];
  switch (transfer.type) {
    case "payment":
      return [...outputFields(transfer, info).slice(0, 2), token, memoField(transfer.memo), ...end];
    case "redemption":
      return [
        { label: "To", text: getAddress(transfer.recipient) },
        { label: "Amount", text: text(transfer.amount) },
        { label: "Fee", text: text(transfer.fee) },
        token,
        memoField(transfer.memo),
        ...end,
      ];
    case "payout":
      return [token, { label: "List", text: transfer.memo }, ...end];
  }
}

/** The fields of one output of a payout. */
export function outputFields({ recipient, amount, memo }: Output, info: ShownAsset): SignedField[] {
  return [accountField("To", recipient), { label: "Amount", text: money(amount, info) }, memoField(memo)];
}

/** The fields of a request to unlock a number. */
export function unlockFields(account: AccountId, sequence: bigint): SignedField[] {
  return [accountField("Account", account), { label: "Order number", text: sequence.toString() }];
}

function accountField(label: string, account: AccountId): SignedField {
  return { label, text: formatAccount(account), raw: account };
}

function memoField(memo: Hex): SignedField {
  return { label: "Memo", text: memo === NO_MEMO ? "none" : `${decodeMemo(memo)} (public)`, raw: memo };
}
