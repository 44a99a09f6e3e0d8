/** Converts errors of wallets and Ethereum nodes to `FastPayError`s. */

import {
  BaseError,
  ContractFunctionRevertedError,
  ContractFunctionZeroDataError,
  decodeErrorResult,
  ExecutionRevertedError,
  HttpRequestError,
  InsufficientFundsError,
  TimeoutError,
  UserRejectedRequestError,
} from "viem";

import type { Hex } from "./bytes.js";
import { COUNCIL_ABI, FASTPAY_ABI } from "./chain/abi.js";
import { FastPayError, isFastPayError, messageOf } from "./errors.js";

/** EIP-1193: the user rejected the request. */
const USER_REJECTED = 4001;

function find<T extends Error>(error: unknown, kind: new (...args: never[]) => T): T | undefined {
  if (error instanceof kind) return error;
  if (!(error instanceof BaseError)) return undefined;
  const found = error.walk((inner) => inner instanceof kind);
  return found instanceof kind ? found : undefined;
}

function isRejection(error: unknown): boolean {
  if (find(error, UserRejectedRequestError) !== undefined) return true;
  for (let inner = error; typeof inner === "object" && inner !== null;) {
    if ("code" in inner && inner.code === USER_REJECTED) return true;
    inner = "cause" in inner ? inner.cause : undefined;
  }
  return false;
}

/** The error of a failed request to a wallet. */
export function walletError(error: unknown): FastPayError {
  if (isFastPayError(error)) return error;
  if (isRejection(error)) {
    const action = "nothing was sent; try again and confirm it in the wallet";
    return new FastPayError("signature-rejected", "the wallet declined", action, { cause: error });
  }
  const refused = tooPoor(error) ?? chainRevert(error);
  if (refused !== undefined) return refused;
  const reason = error instanceof BaseError ? error.shortMessage : messageOf(error);
  return new FastPayError("wallet-failed", `the wallet failed: ${reason}`, "look at the wallet, then try again", {
    cause: error,
  });
}

/** The error of a failed request to an Ethereum node. */
export function chainError(error: unknown): FastPayError {
  if (isFastPayError(error)) return error;
  const refused = tooPoor(error) ?? chainRevert(error);
  if (refused !== undefined) return refused;
  if (isUnreadable(error)) {
    const action = "is this the contract's address on this chain?";
    return new FastPayError("malformed-answer", "the contract's answer cannot be decoded", action, { cause: error });
  }
  const isSilent = find(error, HttpRequestError) ?? find(error, TimeoutError);
  const reason = error instanceof BaseError ? error.shortMessage : messageOf(error);
  const message = isSilent ? "the Ethereum node does not answer" : `the Ethereum node failed: ${reason}`;
  return new FastPayError("chain-unreachable", message, "try again later, or use another Ethereum node", {
    cause: error,
  });
}

/** The error of an address that cannot pay for a transaction and its gas; undefined for other errors. */
function tooPoor(error: unknown): FastPayError | undefined {
  if (find(error, InsufficientFundsError) === undefined) return undefined;
  const message = "the address has too little ETH for this transaction and its gas";
  const action = "nothing was sent; add ETH to the address, or send less";
  return new FastPayError("insufficient-funds", message, action, { cause: error });
}

/** True if the node answered, but the contract's answer does not match its interface. */
function isUnreadable(error: unknown): boolean {
  if (find(error, ContractFunctionZeroDataError) !== undefined) return true;
  const isDecoding = (inner: unknown): boolean =>
    inner instanceof Error &&
    /^(AbiDecoding|PositionOutOfBounds|InvalidBytesBoolean|IntegerOutOfRange)/.test(inner.name);
  return error instanceof BaseError && isDecoding(error.walk(isDecoding));
}

/** The error of a revert, with the contract's decoded error if known; undefined for other errors. */
function chainRevert(error: unknown): FastPayError | undefined {
  const reverted = find(error, ContractFunctionRevertedError);
  const data = reverted?.raw ?? revertData(error);
  if (reverted === undefined && data === undefined && find(error, ExecutionRevertedError) === undefined)
    return undefined;
  const decoded = data === undefined ? undefined : decodeRevert(data);
  const args: readonly unknown[] = decoded?.args ?? [];
  const details = { error: decoded?.errorName ?? "", args, data };
  if (decoded?.errorName === "PausedUntil") return pausedUntil(BigInt(String(args[0])), { cause: error });
  // `require` with a text reverts with `Error(string)`.
  const why = decoded?.errorName === "Error" ? String(args[0]) : (decoded?.errorName ?? "without a reason");
  const action = "see docs/CONTRACT.md for what this refusal asks for";
  return new FastPayError("reverted", `the contract refused: ${why}`, action, { details, cause: error });
}

/** The error of a contract that is paused until `until`, in seconds since 1970. */
export function pausedUntil(until: bigint, options: { cause?: unknown } = {}): FastPayError {
  const when = new Date(Number(until) * 1000).toISOString();
  const message = `the contract is paused until ${when} and takes no deposit, redemption or claim before`;
  const action = "wait: the pause ends by itself; payments go on";
  return new FastPayError("paused", message, action, { details: { until }, ...options });
}

function revertData(error: unknown): Hex | undefined {
  let found: Hex | undefined;
  for (
    let inner = error;
    typeof inner === "object" && inner !== null;
    inner = "cause" in inner ? inner.cause : undefined
  ) {
    const data = "data" in inner ? inner.data : undefined;
    const nested = typeof data === "object" && data !== null && "data" in data ? data.data : data;
    if (typeof nested === "string" && /^0x(?:[0-9a-f]{2}){4,}$/i.test(nested)) found = nested as Hex;
  }
  return found;
}

function decodeRevert(data: Hex): { errorName: string; args?: readonly unknown[] | undefined } | undefined {
  try {
    return decodeErrorResult({ abi: [...FASTPAY_ABI, ...COUNCIL_ABI], data });
  } catch {
    return undefined;
  }
}
