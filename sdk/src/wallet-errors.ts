/** What wallets and Ethereum nodes say when they refuse, in our words. */

import { BaseError, ContractFunctionRevertedError, HttpRequestError, TimeoutError, UserRejectedRequestError } from "viem";

import { FastPayError, isFastPayError, messageOf } from "./errors.js";

/** EIP-1193: the person said no. */
const USER_REJECTED = 4001;

function find<T extends Error>(error: unknown, kind: new (...args: never[]) => T): T | undefined {
  if (error instanceof kind) return error;
  if (!(error instanceof BaseError)) return undefined;
  const found = error.walk((inner) => inner instanceof kind);
  return found instanceof kind ? found : undefined;
}

function isRejection(error: unknown): boolean {
  if (find(error, UserRejectedRequestError) !== undefined) return true;
  for (let inner = error; typeof inner === "object" && inner !== null; ) {
    if ("code" in inner && inner.code === USER_REJECTED) return true;
    inner = "cause" in inner ? inner.cause : undefined;
  }
  return false;
}

/** What a failed request to a wallet means. */
export function walletError(error: unknown): FastPayError {
  if (isFastPayError(error)) return error;
  if (isRejection(error)) {
    const action = "nothing was sent; try again and confirm it in the wallet";
    return new FastPayError("signature-rejected", "it was declined in the wallet", action, { cause: error });
  }
  const reverted = chainRevert(error);
  if (reverted !== undefined) return reverted;
  const said = error instanceof BaseError ? error.shortMessage : messageOf(error);
  return new FastPayError("wallet-failed", `the wallet failed: ${said}`, "look at the wallet, then try again", {
    cause: error,
  });
}

/** What a failed request to an Ethereum node means. */
export function chainError(error: unknown): FastPayError {
  if (isFastPayError(error)) return error;
  const reverted = chainRevert(error);
  if (reverted !== undefined) return reverted;
  const isSilent = find(error, HttpRequestError) ?? find(error, TimeoutError);
  const said = error instanceof BaseError ? error.shortMessage : messageOf(error);
  const message = isSilent ? "the Ethereum node does not answer" : `the Ethereum node failed: ${said}`;
  return new FastPayError("chain-unreachable", message, "try again later, or use another Ethereum node", {
    cause: error,
  });
}

function chainRevert(error: unknown): FastPayError | undefined {
  const reverted = find(error, ContractFunctionRevertedError);
  if (reverted === undefined) return undefined;
  const name = reverted.data?.errorName ?? "";
  const details = { error: name, args: reverted.data?.args ?? [], reason: reverted.reason };
  if (name === "PausedUntil") {
    const until = reverted.data?.args?.[0];
    const message = `the contract is paused until ${String(until)} (seconds since 1970)`;
    return new FastPayError("paused", message, "wait: the pause ends by itself", { details, cause: error });
  }
  const why = name === "" ? (reverted.reason ?? "without a reason") : name;
  const action = "see docs/CONTRACT.md for what this refusal asks for";
  return new FastPayError("reverted", `the contract refused: ${why}`, action, { details, cause: error });
}
