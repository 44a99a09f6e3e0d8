/**
 * One error type for all failures, with one code for each reaction of the caller. `code` is stable, `action` tells
 * people what to do, and `details` has the facts.
 */

/** An error code for programs. */
export type FastPayErrorCode =
  /** An argument is invalid. */
  | "invalid-argument"
  /** The text is not an account, or is mistyped. */
  | "invalid-account"
  /** The text is not an amount of this asset. */
  | "invalid-amount"
  /** The list of payments is invalid. `details.errors` has all faults as `ListError`s. */
  | "invalid-list"
  /** The text is not a payment link, or the link cannot be used. */
  | "invalid-link"
  /** The transfer is invalid, independent of its signature. */
  | "invalid-transfer"
  /** The order is not signed by its sender. */
  | "invalid-order"
  /** The vote is not a valid vote of this member for this order. */
  | "invalid-vote"
  /** The certificate is not valid. */
  | "invalid-certificate"
  /** The list of authorities is not a committee. */
  | "invalid-committee"
  /** The file is not a key file of an Ed25519 key, or is damaged. */
  | "invalid-key-file"
  /** The passphrase does not open the key file. */
  | "wrong-passphrase"
  /** The user declined to sign. */
  | "signature-rejected"
  /** The wallet returned an invalid signature, or one of another key. */
  | "signature-unusable"
  /** The wallet failed in another way. */
  | "wallet-failed"
  /** An authority's or contract's answer cannot be decoded. */
  | "malformed-answer"
  /** An authority cannot be reached. */
  | "unreachable"
  /** An authority did not answer in time. */
  | "timed-out"
  /** An authority refused; see `ProblemError`. */
  | "refused"
  /** Fewer authorities answered than are needed. Try again. */
  | "too-few-answers"
  /** The account's balance is too low. */
  | "insufficient-funds"
  /** Authorities are locked on different orders of the same account and number. */
  | "conflict"
  /** Another order with this number is certified. */
  | "superseded"
  /** The order was executed before, and nothing was paid now. Its certificate is pruned: `details.executed` has the proof. */
  | "executed-before"
  /** The contract voided the number: nothing was paid with it. */
  | "voided"
  /**
   * The owner asked the contract to unlock the number. Authorities vote for and execute no order of it until the
   * contract has decided.
   */
  | "frozen"
  /** Another copy of this wallet keeps sending orders. */
  | "other-copy"
  /** Too few votes or confirmations came. Nothing is lost: resume. */
  | "no-quorum"
  /** The authorities have no space for a new order now. Nothing is lost: resume later. */
  | "no-room"
  /** The authorities vote in an epoch that is not final at the Ethereum node yet. */
  | "new-epoch"
  /**
   * The certificate does not count any more: a recovery ended its epoch, or its epoch ended long ago and too few
   * authorities know it. Resume: the order is certified again.
   */
  | "epoch-ended"
  /** The committee runs without a Primary: nothing can be redeemed. */
  | "no-primary"
  /** Another page or program is using this account. */
  | "busy"
  /** The storage cannot be used. */
  | "storage"
  /** No relayer submits the request to the contract. */
  | "no-relayer"
  /** The contract is paused. */
  | "paused"
  /** The Ethereum node or wallet is on another chain. */
  | "wrong-chain"
  /** The storage belongs to another deployment at the same address, for example before a restart of a test chain. */
  | "other-deployment"
  /** There is no FastPay contract at this address, or not yet in a final block. */
  | "wrong-contract"
  /** The recipient is a contract of FastPay. Money paid to it is lost. */
  | "recipient-is-fastpay"
  /** The redemption has ended without a payout: `details.status` has the reason. */
  | "never-paid"
  /** The contract refused the transaction. */
  | "reverted"
  /** The Ethereum node does not answer, or too few members of the ledger prove what it has. */
  | "chain-unreachable"
  /** The Primary is a ledger, and only a contract does this: `action` says how it is done on a ledger. */
  | "needs-contract"
  /** Not found. */
  | "not-found"
  /** The caller aborted the call. */
  | "aborted";

/** Facts of an error, by name. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** Further facts of an error. */
export interface FastPayErrorOptions {
  /** The facts. */
  readonly details?: ErrorDetails;
  /** The cause. */
  readonly cause?: unknown;
}

/** A failure, with what to do about it. */
export class FastPayError extends Error {
  /** For programs. */
  readonly code: FastPayErrorCode;
  /** The recommended action, for the user. */
  readonly action: string;
  /** The facts. */
  readonly details: ErrorDetails;

  constructor(code: FastPayErrorCode, message: string, action: string, options: FastPayErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "FastPayError";
    this.code = code;
    this.action = action;
    this.details = options.details ?? {};
  }
}

/** Whether an error is a `FastPayError`, with this code if given. */
export function isFastPayError(error: unknown, code?: FastPayErrorCode): error is FastPayError {
  return error instanceof FastPayError && (code === undefined || error.code === code);
}

/** The message of a thrown value. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  return typeof error === "string" ? error : "an unknown error";
}
