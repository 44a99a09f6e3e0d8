/** How driving an order can fail. In every case the order may have been sent, and may be driven again. */

import { formatAccount } from "../accounts.js";
import type { VerifiedCertificate } from "../certificate.js";
import { FastPayError } from "../errors.js";
import type { Trouble } from "../progress.js";
import type { Contest } from "./contest.js";

/** What stands in the way, for people. */
export function describeTrouble(trouble: Trouble): string {
  switch (trouble.kind) {
    case "silent":
      return trouble.message;
    case "insufficient-balance":
      return `it knows of a balance of ${trouble.balance} only`;
    case "behind":
      return `it waits for the certificate of number ${trouble.sequence}, which is not to be found`;
    case "locked":
      return `it is locked on another order (${trouble.digest})`;
    case "other-epoch":
      return `it votes in epoch ${trouble.epoch}`;
    case "no-primary":
      return "it runs without a Primary";
    case "refused":
      return `it refused: ${trouble.message}`;
    case "misbehaved":
      return `it gave a wrong answer: ${trouble.message}`;
  }
}

/** Too few good answers. */
export function noQuorum(
  what: "votes" | "confirmations",
  heard: number,
  quorum: number,
  timedOut: boolean,
  troubles: ReadonlyMap<string, Trouble>,
): FastPayError {
  const why = timedOut ? "in time" : "and no more can come";
  const reasons = [...troubles].map(([authority, trouble]) => `${authority}: ${describeTrouble(trouble)}`);
  const message = [`${heard} of the ${quorum} ${what} that are needed came ${why}`, ...reasons].join("; ");
  return new FastPayError("no-quorum", message, "nothing is lost: resume to go on", {
    details: { what, heard, quorum, timedOut, troubles: Object.fromEntries(troubles) },
  });
}

/** Authorities are locked on different orders of the same account and number. */
export function conflict(contest: Contest): FastPayError {
  const contenders = contest.contenders();
  const transfer = contenders[0]?.order.transfer;
  const whose =
    transfer &&
    `account ${formatAccount(transfer.sender)} has ${contenders.length} orders with number ${transfer.sequence}`;
  const message = `${whose ?? "there are several orders"}, signed with the same key by copies of this wallet`;
  const canEnd = contest.leader() !== undefined;
  const action = canEnd
    ? "one can still be finished when authorities that do not answer now do: stop the other copy, then resume"
    : "as these authorities say, none can be final any more, and this cannot be undone: the account can still receive, but never send again. Use another account, and never two copies of one wallet";
  return new FastPayError("conflict", message, action, { details: { contest, contenders, canEnd } });
}

/** Another order took the number, and is final. */
export function superseded(certificate: VerifiedCertificate): FastPayError {
  const { sender, sequence } = certificate.order.transfer;
  const message =
    `number ${sequence} of account ${formatAccount(sender)} was used for another transfer, by another copy of this wallet; ` +
    "this one did not and will not happen";
  return new FastPayError("superseded", message, "look at the history, then order it again", {
    details: { certificate },
  });
}

/** The votes of f + 1 authorities are for a newer epoch than the contract shows. */
export function newEpoch(epoch: bigint, known: bigint): FastPayError {
  const message = `the authorities vote in epoch ${epoch}, and the Ethereum node shows no more than ${known} in a final block yet`;
  return new FastPayError("new-epoch", message, "nothing is lost: resume in a while", { details: { epoch, known } });
}
