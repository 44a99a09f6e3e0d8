/** What happens on the way, for people who wait. `afterMs` counts from the call that reports it. */

import type { AccountId } from "./accounts.js";
import type { Hex } from "./bytes.js";
import type { VerifiedCertificate } from "./certificate.js";
import type { AuthorityName } from "./committee.js";
import type { Transfer } from "./transfer.js";
import type { ListStatus } from "./views.js";

/** An authority as it is configured. */
export interface AuthorityRef {
  /** The base of its HTTP API. */
  readonly url: string;
  /** Its name, where that is known. */
  readonly name: AuthorityName | undefined;
}

/** Why an authority does not do now what it is asked. */
export type PeerFailure =
  /** No connection, no answer, or it asks for patience. */
  | { readonly kind: "silent"; readonly message: string }
  /** It knows of too little money: deposits or payments have not arrived there. */
  | { readonly kind: "insufficient-balance"; readonly balance: bigint }
  /** It takes no new order now, for want of room on its disk: for anybody's, this account's, or this network address's. */
  | { readonly kind: "no-room"; readonly whose: "disk" | "account" | "address"; readonly retryAfterMs: number }
  /** It lacks the certificate of this number, and nobody else has it. */
  | { readonly kind: "behind"; readonly sequence: bigint }
  /** It is locked on another order. */
  | { readonly kind: "locked"; readonly digest: Hex }
  /** It votes in this epoch, which is not the one that votes are collected for. */
  | { readonly kind: "other-epoch"; readonly epoch: bigint }
  /** It has no Primary. */
  | { readonly kind: "no-primary" }
  /** It says that the request is wrong. */
  | { readonly kind: "refused"; readonly message: string }
  /** It answered what no correct authority answers. */
  | { readonly kind: "misbehaved"; readonly message: string };

/** A valid vote came. */
export interface VoteStep {
  readonly type: "vote";
  readonly authority: AuthorityRef;
  readonly votes: number;
  readonly quorum: number;
}

/** What holds one authority up. */
export type DelayStep =
  /** It lacks an earlier certificate and gets it. */
  | {
      readonly type: "catching-up";
      readonly authority: AuthorityRef;
      readonly account: AccountId;
      readonly sequence: bigint;
    }
  /** It is asked again later. */
  | { readonly type: "waiting"; readonly authority: AuthorityRef; readonly failure: PeerFailure };

/** A step of a transfer, from its order to its settlement. */
export type TransferStep =
  /** An earlier order of the account is finished first. Of its own steps only what holds it up is told. */
  | { readonly type: "finishing"; readonly transfer: Transfer }
  /** Committee and account were asked; the wallet is asked to sign next. */
  | { readonly type: "signing"; readonly transfer: Transfer }
  /** The order is signed and in the storage; it is sent next. What is told from here on is of this order. */
  | { readonly type: "ordered"; readonly transfer: Transfer; readonly digest: Hex; readonly resumed: boolean }
  | VoteStep
  /** The certificate exists and is stored: the transfer is final. */
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
  /** Another copy of this wallet signed this order: that one is finished now, and what is told from here on is of it. */
  | { readonly type: "adopted"; readonly transfer: Transfer };

/** A step of a transfer and when it was. */
export type TransferProgress = TransferStep & { readonly afterMs: number };

/** A step of paying a list. */
export type ManyStep =
  | Extract<TransferStep, { readonly type: "finishing" | "signing" | "adopted" }>
  | DelayStep
  /** How far each order of the list is now. */
  | { readonly type: "list"; readonly status: ListStatus };

/** A step of paying a list and when it was. */
export type ManyProgress = ManyStep & { readonly afterMs: number };

/** A step of a transaction on the Primary. */
export type ChainStep =
  /** The epoch of a redemption's certificate has ended: the current committee votes for it again. */
  | VoteStep
  | DelayStep
  /** The wallet is asked to sign a permit, an approval, or the transaction itself. */
  | { readonly type: "signing"; readonly what: "permit" | "approval" | "transaction" }
  /** An approval was sent; what it is for follows when it is in a block. */
  | { readonly type: "approval-submitted"; readonly hash: Hex }
  | { readonly type: "submitted"; readonly hash: Hex }
  /** The Ethereum node does not answer and is asked again; without a failure: it answers again. */
  | { readonly type: "node"; readonly failure: string | undefined }
  | { readonly type: "included"; readonly hash: Hex; readonly block: bigint }
  /** The newest block that stays is so many blocks before the transaction's. */
  | { readonly type: "finalizing"; readonly hash: Hex; readonly blocks: bigint }
  | { readonly type: "final"; readonly hash: Hex; readonly block: bigint }
  /** So many authorities have credited a deposit. */
  | { readonly type: "credited"; readonly authorities: number; readonly quorum: number };

/** A step of a transaction and when it was. */
export type ChainProgress = ChainStep & { readonly afterMs: number };
