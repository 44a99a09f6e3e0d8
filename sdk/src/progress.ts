/** Progress of transfers and transactions. `afterMs` counts from the start of the call. */

import type { AccountId } from "./accounts.js";
import type { Hex } from "./bytes.js";
import type { VerifiedCertificate } from "./certificate.js";
import type { AuthorityName } from "./committee.js";
import type { Transfer } from "./transfer.js";
import type { ListStatus } from "./views.js";

/** A configured authority. */
export interface AuthorityRef {
  /** The base of its HTTP API. */
  readonly url: string;
  /** Its name, if known. */
  readonly name: AuthorityName | undefined;
}

/** Why an authority did not fulfil a request. */
export type PeerFailure =
  /** No connection, no answer, or a request to wait. */
  | { readonly kind: "silent"; readonly message: string }
  /** It was restored from an older copy, and does not know yet what it may have voted for from this account. */
  | { readonly kind: "restored" }
  /** The balance at this authority is too low: deposits or payments have not arrived there. */
  | { readonly kind: "insufficient-balance"; readonly balance: bigint }
  /** It accepts no new order now, for lack of disk space: from anybody, this account, or this network address. */
  | { readonly kind: "no-room"; readonly whose: "disk" | "account" | "address"; readonly retryAfterMs: number }
  /** It lacks the certificate of this number, and no other authority returned it. */
  | { readonly kind: "behind"; readonly sequence: bigint }
  /** It is locked on another order. */
  | { readonly kind: "locked"; readonly digest: Hex }
  /** It votes in this epoch, but the client collects votes of another one. */
  | { readonly kind: "other-epoch"; readonly epoch: bigint }
  /** It has no Primary. */
  | { readonly kind: "no-primary" }
  /** It votes for and executes no order of the number until the contract has decided about the number. */
  | { readonly kind: "frozen" }
  /** It has read no final request of the owner to unlock the number. */
  | { readonly kind: "not-requested" }
  /** It reports that the contract voided the number. */
  | { readonly kind: "voided" }
  /** A recovery installed this epoch. Certificates of earlier epochs, which it was sent, count for nothing. */
  | { readonly kind: "epoch-ended"; readonly epoch: bigint }
  /** The certificate's epoch ended too long ago for it to count by itself, and too few authorities know it. */
  | { readonly kind: "unattested"; readonly epoch: bigint }
  /** It rejected the request as invalid. */
  | { readonly kind: "refused"; readonly message: string }
  /** It gave an answer that no correct authority gives. */
  | { readonly kind: "misbehaved"; readonly message: string };

/** A valid vote arrived. */
export interface VoteStep {
  readonly type: "vote";
  readonly authority: AuthorityRef;
  readonly votes: number;
  readonly quorum: number;
}

/** The reason why one authority is delayed. */
export type DelayStep =
  /** The authority lacks an earlier certificate, which is sent to it. */
  | {
      readonly type: "catching-up";
      readonly authority: AuthorityRef;
      readonly account: AccountId;
      readonly sequence: bigint;
    }
  /** The authority will be asked again later. */
  | { readonly type: "waiting"; readonly authority: AuthorityRef; readonly failure: PeerFailure };

/** A step of a transfer, from its order to its settlement. */
export type TransferStep =
  /** An earlier order of the account is finished first. Only its delays and adoptions are reported. */
  | { readonly type: "finishing"; readonly transfer: Transfer }
  /** The account was read and checked. Next, the wallet signs. */
  | { readonly type: "signing"; readonly transfer: Transfer }
  /** The order is signed and stored. Next, it is sent. The following steps belong to this order. */
  | { readonly type: "ordered"; readonly transfer: Transfer; readonly digest: Hex; readonly resumed: boolean }
  | VoteStep
  /** The certificate exists and is stored: the transfer is certified. */
  | { readonly type: "certified"; readonly certificate: VerifiedCertificate }
  /** An authority has confirmed the certificate. */
  | {
      readonly type: "confirmed";
      readonly authority: AuthorityRef;
      readonly confirmations: number;
      readonly quorum: number;
    }
  /** A quorum has confirmed it. */
  | { readonly type: "settled" }
  | DelayStep
  /** Another copy of this wallet signed this order. It is finished now, and the following steps belong to it. */
  | { readonly type: "adopted"; readonly transfer: Transfer };

/** A step of a transfer, with its time. */
export type TransferProgress = TransferStep & { readonly afterMs: number };

/** A step of paying a list. */
export type ManyStep =
  | Extract<TransferStep, { readonly type: "finishing" | "signing" | "adopted" }>
  | DelayStep
  /** The state of each order of the list. */
  | { readonly type: "list"; readonly status: ListStatus };

/** A step of paying a list, with its time. */
export type ManyProgress = ManyStep & { readonly afterMs: number };

/** The authorities' votes about a number to unlock. Times are in seconds since 1970. */
export interface UnlockVotesStep {
  readonly type: "unlock-votes";
  /** The number of members that know a certificate of the number. A quorum upholds its order. */
  readonly attesting: number;
  /** The number of members that vote to void it. All together void it at once. */
  readonly voiding: number;
  readonly members: number;
  readonly quorum: number;
  /** A quorum can void the number from this time on. */
  readonly voidableFrom: bigint;
  /** All members can void it at once from this time on. */
  readonly unanimousFrom: bigint;
}

/** A step of a transaction on the Primary. */
export type ChainStep =
  /**
   * The current committee votes for a redemption again, because the contract takes no votes of its certificate's epoch.
   */
  | VoteStep
  | DelayStep
  /** The wallet signs a permit, an approval, or the transaction itself. */
  | { readonly type: "signing"; readonly what: "permit" | "approval" | "transaction" }
  /** The owner signs a request to unlock. */
  | { readonly type: "signing"; readonly what: "unlock-request"; readonly account: AccountId; readonly sequence: bigint }
  /** A relayer has accepted the request to unlock, and pays for it. */
  | { readonly type: "relayed"; readonly relayer: string }
  | UnlockVotesStep
  /** The contract has decided, and authorities have read the decision; or an order could be finished after all. */
  | { readonly type: "unlocked"; readonly outcome: "voided" | "finished" }
  /** An approval was sent. The transaction that needs it follows once it is in a block. */
  | { readonly type: "approval-submitted"; readonly hash: Hex }
  | { readonly type: "submitted"; readonly hash: Hex }
  /** The Ethereum node does not answer, and requests are repeated. Without a failure: it answers again. */
  | { readonly type: "node"; readonly failure: string | undefined }
  | { readonly type: "included"; readonly hash: Hex; readonly block: bigint }
  /** The number of blocks between the newest final block and the transaction's. */
  | { readonly type: "finalizing"; readonly hash: Hex; readonly blocks: bigint }
  | { readonly type: "final"; readonly hash: Hex; readonly block: bigint }
  /** The number of authorities that credited the deposit. */
  | { readonly type: "credited"; readonly authorities: number; readonly quorum: number };

/** A step of a transaction, with its time. */
export type ChainProgress = ChainStep & { readonly afterMs: number };
