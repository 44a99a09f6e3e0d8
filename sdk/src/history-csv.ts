/** A history as CSV, with one row for each payment, so that each column of amounts can be summed. */

import { getAddress } from "viem";

import { formatAccount } from "./accounts.js";
import { decodeMemo } from "./memo.js";
import type { DepositEntry, History, ReceivedEntry, SentEntry } from "./views.js";

type Row = Readonly<
  Record<"kind" | "date" | "account" | "asset" | "units" | "fee" | "memo" | "sequence" | "output" | "digest", string>
>;

const EMPTY: Row = { kind: "", date: "", account: "", asset: "", units: "", fee: "", memo: "", sequence: "", output: "", digest: "" };

/** An entry of a history, of any kind. */
export type HistoryEntry = SentEntry | ReceivedEntry | DepositEntry;

/**
 * An account's transfers and deposits, newest first. `units` are in the asset's smallest unit. The protocol has no
 * clock: `date` is the time at which this storage stored an order, or the time in `times` (milliseconds since 1970).
 * Entries without a date come last.
 */
export async function formatHistory(
  history: Pick<History, "sent" | "received" | "deposits">,
  times: ReadonlyMap<HistoryEntry, number> = new Map(),
): Promise<string> {
  const { unparse } = (await import("papaparse")).default;
  const dated = <T extends HistoryEntry>(entries: readonly T[], rowsOf: (entry: T, date: string) => Row[]) =>
    entries.map((entry) => {
      const ms = times.get(entry) ?? ("order" in entry ? entry.order?.createdAtMs : undefined);
      return { ms: ms ?? Number.NEGATIVE_INFINITY, rows: rowsOf(entry, ms === undefined ? "" : new Date(ms).toISOString()) };
    });
  const { received, sent, deposits } = history;
  const all = [...dated(received, receivedRows), ...dated(sent, sentRows), ...dated(deposits, depositRows)];
  const rows = all.sort((a, b) => (a.ms === b.ms ? 0 : b.ms - a.ms)).flatMap((entry) => entry.rows);
  return `${unparse({ fields: Object.keys(EMPTY), data: rows }, { newline: "\n" })}\n`;
}

function depositRows({ index, asset, amount }: DepositEntry, date: string): Row[] {
  return [{ ...EMPTY, kind: "deposit", date, asset, units: amount.toString(), sequence: index.toString() }];
}

function receivedRows({ payment, output, digest }: ReceivedEntry, date: string): Row[] {
  const row = {
    ...EMPTY,
    kind: "received",
    date,
    account: formatAccount(payment.sender),
    asset: payment.asset,
    units: payment.amount.toString(),
    memo: decodeMemo(payment.memo),
    sequence: payment.sequence.toString(),
    output: output?.toString() ?? "",
    digest,
  };
  return [row];
}

/** A payout has a row for each output. */
function sentRows({ transfer, digest }: SentEntry, date: string): Row[] {
  const { asset, sequence } = transfer;
  const common = { ...EMPTY, kind: "sent", date, asset, sequence: sequence.toString(), digest };
  switch (transfer.type) {
    case "payment":
      return [{ ...common, account: formatAccount(transfer.recipient), units: transfer.amount.toString(), memo: decodeMemo(transfer.memo) }];
    case "redemption": {
      const { recipient, amount, fee, memo } = transfer;
      return [{ ...common, kind: "redeemed", account: getAddress(recipient), units: amount.toString(), fee: fee.toString(), memo: decodeMemo(memo) }];
    }
    case "payout":
      return transfer.outputs.map(({ recipient, amount, memo }, output) => ({
        ...common,
        account: formatAccount(recipient),
        units: amount.toString(),
        memo: decodeMemo(memo),
        output: output.toString(),
      }));
  }
}
