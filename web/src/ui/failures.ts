/** Texts for the failures of authorities. */

import type { PeerFailure } from "@fastpay/sdk";

const ROOM = {
  disk: "accepts no new orders: its disk is nearly full",
  account: "accepts no more orders from this account for now",
  address: "accepts no more orders from your network address for now",
};

/** An authority's failure, as the predicate of a sentence about it. */
export function failureText(failure: PeerFailure): string {
  switch (failure.kind) {
    case "silent":
      return "does not answer yet";
    case "restored":
      return "was restored from an older copy and does not vote for this account until it has recovered its earlier votes";
    case "insufficient-balance":
      return "has not received all your payments or deposits yet";
    case "no-room":
      return ROOM[failure.whose];
    case "behind":
      return `lacks order #${failure.sequence}`;
    case "locked":
      return "is locked on another order";
    case "other-epoch":
      return `votes in epoch ${failure.epoch}`;
    case "no-primary":
      return "has no Primary configured";
    case "frozen":
      return "is waiting for the decision about this number";
    case "not-requested":
      return "has not read the unlock request yet";
    case "voided":
      return "reports that this number is void";
    case "epoch-ended":
      return "was installed by a recovery, and accepts no certificates from before it";
    case "unattested":
      return "does not know this payment, whose committee was replaced long ago";
    case "refused":
      return `refuses: ${failure.message}`;
    case "misbehaved":
      return `sent an invalid answer: ${failure.message}`;
  }
}
