/**
 * One error type for everything that can go wrong, sorted by what the caller should do. `code` never changes its
 * meaning; `action` is for people; `details` has the facts.
 */

/** A short word for programs. */
export type FastPayErrorCode =
  /** An argument makes no sense. */
  | "invalid-argument"
  /** The text is no account, or mistyped. */
  | "invalid-account"
  /** The text is no amount of this asset. */
  | "invalid-amount"
  /** The list of payments has something wrong in it: `details.errors` has it all, as `ListError`s. */
  | "invalid-list"
  /** The text is no payment link, or one that cannot be used. */
  | "invalid-link"
  /** Nobody may order this transfer, whoever signs it. */
  | "invalid-transfer"
  /** The order is not one that its sender signed. */
  | "invalid-order"
  /** The vote is not one of this member for this order. */
  | "invalid-vote"
  /** The certificate proves nothing. */
  | "invalid-certificate"
  /** The list of authorities is not a committee. */
  | "invalid-committee"
  /** The file is none of an Ed25519 key, or damaged. */
  | "invalid-key-file"
  /** The passphrase does not open the key file. */
  | "wrong-passphrase"
  /** The person declined to sign. */
  | "signature-rejected"
  /** The wallet gave a signature that is not valid, or of another key. */
  | "signature-unusable"
  /** The wallet failed in another way. */
  | "wallet-failed"
  /** An authority, or a contract, answered what cannot be read. */
  | "malformed-answer"
  /** An authority cannot be reached. */
  | "unreachable"
  /** An authority did not answer in time. */
  | "timed-out"
  /** An authority refused; see `ProblemError`. */
  | "refused"
  /** Fewer authorities than a quorum answered. */
  | "too-few-answers"
  /** The account does not hold enough. */
  | "insufficient-funds"
  /** Authorities are locked on different orders of the same account and number. */
  | "conflict"
  /** Another order took the number, and is final. */
  | "superseded"
  /** Another copy of this wallet orders faster than this one can follow. */
  | "other-copy"
  /** Too few votes or confirmations came. Nothing is lost: resume. */
  | "no-quorum"
  /** The authorities take no new order now, for want of room. Nothing is lost: resume later. */
  | "no-room"
  /** The authorities vote in an epoch that the Ethereum node does not show yet. */
  | "new-epoch"
  /** The committee runs without a Primary: nothing can be redeemed. */
  | "no-primary"
  /** Another page or program is using this account. */
  | "busy"
  /** The storage cannot be used. */
  | "storage"
  /** The contract is paused. */
  | "paused"
  /** The Ethereum node or wallet is on another chain. */
  | "wrong-chain"
  /** The storage has been used with another deployment at the same address, such as one that was started anew. */
  | "other-deployment"
  /** There is no FastPay contract at this address, or not yet in a final block. */
  | "wrong-contract"
  /** The recipient is a contract of FastPay: what is paid to it is lost. */
  | "recipient-is-fastpay"
  /** The contract refused the transaction. */
  | "reverted"
  /** The Ethereum node does not answer. */
  | "chain-unreachable"
  /** Nothing of this kind is known. */
  | "not-found"
  /** The caller gave up. */
  | "aborted";

/** Facts of an error, by name. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** What else an error says. */
export interface FastPayErrorOptions {
  /** The facts. */
  readonly details?: ErrorDetails;
  /** What caused it. */
  readonly cause?: unknown;
}

/** Why something did not happen, and what to do about it. */
export class FastPayError extends Error {
  /** For programs. */
  readonly code: FastPayErrorCode;
  /** What a person can do. */
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

/** The error in question is one of ours, and of this code. */
export function isFastPayError(error: unknown, code?: FastPayErrorCode): error is FastPayError {
  return error instanceof FastPayError && (code === undefined || error.code === code);
}

/** What an unknown thing that was thrown says. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  return typeof error === "string" ? error : "an unknown error";
}
