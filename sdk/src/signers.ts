/** Signers of orders: an Ethereum wallet (EIP-1193 or viem), or an Ed25519 key. */

import { ed25519 } from "@noble/curves/ed25519.js";
import {
  getTypesForEIP712Domain,
  serializeTypedData,
  type EIP1193Provider,
  type TypedDataDefinition,
} from "viem";

import { accountFromEd25519, accountFromEthereum, type AccountId } from "./accounts.js";
import { concat, toBytes, toHex, type Address, type Hex } from "./bytes.js";
import type { EthereumWallet } from "./client.js";
import { transferDigest, transferTypedData, unlockRequestDigest, unlockTypedData } from "./eip712.js";
import { FastPayError } from "./errors.js";
import { normalizeSignature } from "./signatures.js";
import { checkOutput, checkTransfer, type Authorization, type Domain, type Transfer } from "./transfer.js";
import { isAuthorized, verifyOrder, type VerifiedOrder } from "./verify.js";
import { walletError } from "./wallet-errors.js";

/** The owner of an account. */
export interface Signer {
  /** The account of the signer. */
  readonly account: AccountId;
  /** The owner's authorization of a transfer. */
  authorize(domain: Domain, transfer: Transfer): Promise<Authorization>;
  /** The owner's authorization to ask the contract to unlock a number. */
  authorizeUnlock(domain: Domain, sequence: bigint): Promise<Authorization>;
}

/**
 * A signer with an Ethereum wallet: an EIP-1193 provider, as injected by browser wallets, with the address to use; or a
 * wallet client of viem that has an account. A provider signs by `eth_signTypedData_v4`, so the wallet shows the
 * fields.
 */
export function ethereumSigner(wallet: EthereumWallet | EIP1193Provider, address?: Address): Signer {
  const known = "signTypedData" in wallet ? wallet.account : undefined;
  const owner = address ?? known?.address;
  if (owner === undefined) {
    throw new FastPayError("invalid-argument", "no address is given", "give the address that the wallet signs for");
  }
  // A local account of the client signs by itself. For an address, the wallet signs.
  const account = known?.address.toLowerCase() === owner.toLowerCase() ? known : owner;
  const sign = async (typed: TypedDataDefinition): Promise<Authorization> => {
    let raw: Hex;
    try {
      raw =
        "signTypedData" in wallet
          ? await wallet.signTypedData({ ...typed, account })
          : await wallet.request({ method: "eth_signTypedData_v4", params: [owner, withDomainType(typed)] });
    } catch (error) {
      throw walletError(error);
    }
    const signature = normalizeSignature(raw);
    if (signature === undefined) {
      const action = "use an address that has a key of its own: contract wallets cannot own an account";
      throw new FastPayError("signature-unusable", "the wallet returned a value that is not a secp256k1 signature", action);
    }
    return { type: "ethereum", signature };
  };
  const id = accountFromEthereum(owner);
  return {
    account: id,
    authorize: (domain, transfer) => sign(transferTypedData(domain, transfer)),
    authorizeUnlock: (domain, sequence) => sign(unlockTypedData(domain, id, sequence)),
  };
}

/** The JSON parameter of `eth_signTypedData_v4`, which also needs the type of the domain. */
function withDomainType(typed: TypedDataDefinition): string {
  const { domain = {}, message, primaryType, types } = typed;
  const EIP712Domain = getTypesForEIP712Domain({ domain });
  return serializeTypedData({ domain, message, primaryType, types: { EIP712Domain, ...types } } as TypedDataDefinition);
}

/** A signer with an Ed25519 key, given its 32-byte secret. */
export function ed25519Signer(secret: Uint8Array | Hex): Signer {
  const bytes = typeof secret === "string" ? toBytes(secret) : Uint8Array.from(secret);
  if (bytes.length !== 32) {
    throw new FastPayError("invalid-argument", "an Ed25519 secret has 32 bytes", "give the secret key");
  }
  const key = toHex(ed25519.getPublicKey(bytes));
  return keySigner(key, async (digest) => ed25519.sign(digest, bytes));
}

/** A signer with an Ed25519 key; `sign` signs a digest with it. */
function keySigner(key: Hex, sign: (digest: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>): Signer {
  const account = accountFromEd25519(key);
  const authorization = async (digest: Hex): Promise<Authorization> => {
    return { type: "ed25519", key, signature: toHex(await sign(Uint8Array.from(toBytes(digest)))) };
  };
  return {
    account,
    authorize: (domain, transfer) => authorization(transferDigest(domain, transfer)),
    authorizeUnlock: (domain, sequence) => authorization(unlockRequestDigest(domain, account, sequence)),
  };
}

/** The PKCS #8 prefix of a 32-byte Ed25519 secret (RFC 8410). */
const PKCS8_PREFIX = "0x302e020100300506032b657004220420";

/**
 * A signer whose Ed25519 secret WebCrypto keeps as a key that cannot be exported, so other scripts of the page cannot
 * read it. Overwrites `secret`. Throws `wallet-failed` if WebCrypto does not support Ed25519.
 */
export async function sealedSigner(secret: Uint8Array): Promise<Signer> {
  const key = toHex(ed25519.getPublicKey(secret));
  const pkcs8 = Uint8Array.from(concat(toBytes(PKCS8_PREFIX), secret));
  let sealed: CryptoKey;
  try {
    sealed = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", false, ["sign"]);
  } catch (cause) {
    const action = "use a newer browser, or an Ethereum wallet";
    throw new FastPayError("wallet-failed", "this browser cannot store Ed25519 keys", action, { cause });
  } finally {
    pkcs8.fill(0);
    secret.fill(0);
  }
  return keySigner(key, async (digest) => new Uint8Array(await crypto.subtle.sign("Ed25519", sealed, digest)));
}

/** True if WebCrypto supports Ed25519 here, so that `sealedSigner` works. */
export function canSealKeys(): Promise<boolean> {
  return sealedSigner(crypto.getRandomValues(new Uint8Array(32))).then(
    () => true,
    () => false,
  );
}

/**
 * Has an order signed, and verifies the signature as every authority will: an invalid order must never occupy a number.
 * Throws `invalid-transfer`, `signature-rejected`, `signature-unusable` or `wallet-failed`.
 */
export async function signOrder(signer: Signer, domain: Domain, transfer: Transfer): Promise<VerifiedOrder> {
  checkTransfer(transfer, domain);
  // Authorities refuse it, so it would occupy its number.
  if (transfer.type === "payment") checkOutput(transfer.recipient, transfer.amount, domain);
  const authorization = await signer.authorize(domain, transfer);
  try {
    return verifyOrder({ transfer, authorization }, domain);
  } catch (cause) {
    throw signedOther(cause);
  }
}

/**
 * Has a request to unlock a number signed. Returns the contract's encoding: key and signature for Ed25519, or the
 * signature for an Ethereum key. Verifies the signature. Throws like `signOrder`.
 */
export async function signUnlock(signer: Signer, domain: Domain, sequence: bigint): Promise<Hex> {
  const { account } = signer;
  const authorization = await signer.authorizeUnlock(domain, sequence);
  if (!isAuthorized(authorization, account, unlockRequestDigest(domain, account, sequence))) throw signedOther();
  return authorization.type === "ethereum" ? authorization.signature : `${authorization.key}${authorization.signature.slice(2)}`;
}

function signedOther(cause?: unknown): FastPayError {
  const action = "select the account that owns this money in the wallet, then try again";
  return new FastPayError("signature-unusable", "the wallet signed with another key, or signed other data", action, { cause });
}
