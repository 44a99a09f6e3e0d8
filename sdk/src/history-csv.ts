/** A history as a file for spreadsheets (CSV): a row for each payment, so that each column of amounts adds up. */

import { formatAccount } from "./accounts.js";
import { decodeMemo } from "./memo.js";
import type { History, ReceivedEntry, SentEntry } from "./views.js";

type Row = Readonly<
  Record<"kind" | "date" | "account" | "asset" | "units" | "fee" | "memo" | "sequence" | "output" | "digest", string>
>;

const EMPTY: Row = { kind: "", date: "", account: "", asset: "", units: "", fee: "", memo: "", sequence: "", output: "", digest: "" };

/**
 * What an account sent, received and deposited. `units` are in the asset's smallest unit; `date` is when this storage wrote
 * an order down: the protocol has no clock, so nobody knows when others did something.
 */
export async function formatHistory(history: Pick<History, "sent" | "received" | "deposits">): Promise<string> {
  const { unparse } = (await import("papaparse")).default;
  const deposits = history.deposits.map(({ index, asset, amount }) => ({
    ...EMPTY,
    kind: "deposit",
    asset,
    units: amount.toString(),
    sequence: index.toString(),
  }));
  const rows = [...history.received.map(receivedRow), ...history.sent.flatMap(sentRows), ...deposits];
  return `${unparse({ fields: Object.keys(EMPTY), data: rows }, { newline: "\n" })}\n`;
}

function receivedRow({ payment, output, certificate }: ReceivedEntry): Row {
  return {
    ...EMPTY,
    kind: "received",
    account: formatAccount(payment.sender),
    asset: payment.asset,
    units: payment.amount.toString(),
    memo: decodeMemo(payment.memo),
    sequence: payment.sequence.toString(),
    output: output?.toString() ?? "",
    digest: certificate.digest,
  };
}

/** A payout has a row for each output. */
function sentRows({ certificate, order }: SentEntry): Row[] {
  const { transfer } = certificate.order;
  const date = order?.createdAtMs === undefined ? "" : new Date(order.createdAtMs).toISOString();
  const { asset, sequence } = transfer;
  const common = { ...EMPTY, kind: "sent", date, asset, sequence: sequence.toString(), digest: certificate.digest };
  switch (transfer.type) {
    case "payment":
      return [{ ...common, account: formatAccount(transfer.recipient), units: transfer.amount.toString(), memo: decodeMemo(transfer.memo) }];
    case "redemption": {
      const { recipient, amount, fee, memo } = transfer;
      return [{ ...common, kind: "redeemed", account: recipient, units: amount.toString(), fee: fee.toString(), memo: decodeMemo(memo) }];
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
