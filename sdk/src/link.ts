/**
 * Payment links, which request a payment (docs/PAYMENT_LINKS.md). They resemble EIP-681, but contain the chain and the
 * contract, so that a wallet of another deployment refuses them.
 *
 * ```text
 * fastpay:<account>@<chain id>/<contract>?asset=&amount=&memo=|text=&label=&expires=
 * https://wallet.example/pay#fastpay:…
 * ```
 * A link is untrusted: it is parsed strictly. It names the account that *asks* for money, and does not prove its
 * owner's identity.
 */

import { checksumAddress } from "viem";

import { formatAccount, parseAccount, type AccountId } from "./accounts.js";
import { AMOUNT_MAX } from "./amounts.js";
import { isHex, type Address, type Hex } from "./bytes.js";
import { FastPayError } from "./errors.js";
import { decodeMemo, encodeMemo, NO_MEMO } from "./memo.js";
import { plainText } from "./plain-text.js";
import { ETHER, type Domain } from "./transfer.js";

/** The maximum length of a link. A longer one would not fit a QR code that cameras read easily. */
export const LINK_LENGTH_MAX = 1_024;
/** The maximum number of displayed characters of a label. */
export const LABEL_LENGTH_MAX = 64;

const SCHEME = "fastpay:";
/** The largest chain id (EIP-2294). */
const NUMBER_MAX = 4_503_599_627_370_476n;
/** The latest time in a link: the end of the year 9999, in seconds since 1970. */
const TIME_MAX = 253_402_300_799n;
const PARAMETERS = ["asset", "amount", "memo", "text", "label", "expires"] as const;
type Parameter = (typeof PARAMETERS)[number];
type Parameters = Partial<Record<Parameter, string>>;

/** The request of a payment link. */
export interface PaymentLink {
  /** The recipient's account. */
  readonly account: AccountId;
  /** The deployment that the payment is for. */
  readonly domain: Domain;
  /** The asset: an ERC-20's address in lower case, or `ETHER`. */
  readonly asset: Address;
  /** The amount in the asset's smallest unit. If absent, the payer chooses. */
  readonly amount?: bigint;
  /** The memo, by which the recipient recognizes the payment. */
  readonly memo?: Hex;
  /** The recipient's claimed name. Unverified. */
  readonly label?: string;
  /** The time until which the recipient expects the payment, in seconds since 1970. */
  readonly expires?: bigint;
}

/**
 * The link as text, for a QR code or a `href`. Throws `invalid-link` if the request is not valid, or if its label is
 * too long to be displayed whole.
 */
export function formatPaymentLink(link: PaymentLink): string {
  const { account, domain, asset, amount, memo, label, expires } = link;
  const values: [Parameter, string][] = [];
  if (asset !== ETHER) values.push(["asset", checksumAddress(asset)]);
  if (amount !== undefined) values.push(["amount", amount.toString()]);
  if (memo !== undefined && memo !== NO_MEMO) values.push(memoParameter(memo));
  if (label !== undefined && label !== "") values.push(["label", wholeLabel(label)]);
  if (expires !== undefined) values.push(["expires", expires.toString()]);
  const query = values.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  const target = `${formatAccount(account)}@${domain.chainId}/${checksumAddress(domain.contract)}`;
  const text = `${SCHEME}${target}${query === "" ? "" : `?${query}`}`;
  // Every formatted link must parse.
  parsePaymentLink(text);
  return text;
}

function wholeLabel(label: string): string {
  const { length } = [...plainText(label, Number.POSITIVE_INFINITY)];
  if (length <= LABEL_LENGTH_MAX) return label;
  throw invalid(`its label has ${length} characters; at most ${LABEL_LENGTH_MAX} are shown`, "shorten it");
}

/**
 * A web link for people without a program for `fastpay:`. It opens a web wallet's page with the payment link after the
 * `#`, which browsers do not send to the page's host.
 */
export function formatWebLink(page: string, link: PaymentLink): string {
  const url = new URL(page);
  url.hash = formatPaymentLink(link);
  return url.href;
}

/** Parses a link of either form. Throws `invalid-link`, or `invalid-account` for a mistyped account. */
export function parsePaymentLink(text: string): PaymentLink {
  if (text.length > LINK_LENGTH_MAX) throw invalid("it is too long", "ask for a shorter one");
  const bare = withoutPage(text.trim());
  if (!hasScheme(bare)) throw invalid("it does not start with fastpay:", "copy it again completely");
  const rest = bare.slice(SCHEME.length);
  const [target, query = ""] = splitOnce(rest, "?");
  const parts = /^([0-9A-Za-z]+)@([0-9]{1,16})\/(0x[0-9a-fA-F]{40})$/.exec(target);
  if (parts === null) throw invalid("it lacks an account, chain or contract", "copy it again completely");
  const [, account = "", chainId = "", contract = ""] = parts;
  const parameters = readParameters(query);
  return {
    account: parseAccount(account),
    domain: { chainId: number("chain id", chainId, NUMBER_MAX), contract: address("contract", contract) },
    asset: parameters.asset === undefined ? ETHER : address("asset", parameters.asset),
    ...readWishes(parameters),
  };
}

/** True if the text starts like a link of either form, well-formed or not. */
export function isPaymentLink(text: string): boolean {
  return hasScheme(withoutPage(text.trim()));
}

/** Throws `invalid-link` if the link has expired. */
export function checkExpiry(expires: bigint | undefined): void {
  if (expires === undefined || expires * 1_000n >= BigInt(Date.now())) return;
  const action = "nothing was paid; ask for a new one: the price may have changed";
  throw new FastPayError("invalid-link", "this link has expired", action, { details: { expires } });
}

function hasScheme(text: string): boolean {
  return text.slice(0, SCHEME.length).toLowerCase() === SCHEME;
}

function withoutPage(text: string): string {
  const hashAt = /^https?:\/\//i.test(text) ? text.indexOf("#") : -1;
  return hashAt < 0 ? text : text.slice(hashAt + 1);
}

function memoParameter(memo: Hex): [Parameter, string] {
  const text = decodeMemo(memo);
  // Write the memo as text only if that text encodes to the same bytes.
  return text !== memo && encodeMemo(text) === memo ? ["text", text] : ["memo", memo];
}

function readParameters(query: string): Parameters {
  const found: Parameters = {};
  for (const pair of query === "" ? [] : query.split("&")) {
    const [name, value] = splitOnce(pair, "=");
    if (value === undefined) throw invalid(`${JSON.stringify(name)} has no value`, "copy it again");
    const known = PARAMETERS.find((parameter) => parameter === name);
    // As in BIP-21: refuse an unknown parameter that starts with `req-`, and ignore other unknown ones.
    if (known === undefined && name.startsWith("req-")) {
      throw invalid(`it needs ${JSON.stringify(name.slice(4))}, which this wallet does not know`, "use a newer wallet");
    }
    if (known === undefined) continue;
    if (found[known] !== undefined) throw invalid(`it has ${known} twice`, "do not pay; ask for another link");
    found[known] = decode(value);
  }
  return found;
}

function readWishes(parameters: Parameters): Partial<PaymentLink> {
  const amount = parameters.amount === undefined ? undefined : number("amount", parameters.amount, AMOUNT_MAX);
  if (amount === 0n) throw invalid("its amount is zero", "ask for a link with an amount");
  const memo = readMemo(parameters);
  const { label, expires } = parameters;
  return {
    ...(amount === undefined ? {} : { amount }),
    ...(memo === undefined ? {} : { memo }),
    ...(label === undefined ? {} : { label: plainText(label, LABEL_LENGTH_MAX) }),
    ...(expires === undefined ? {} : { expires: number("time", expires, TIME_MAX) }),
  };
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch (cause) {
    throw invalid("a % lacks its digits", "copy it again", cause);
  }
}

function readMemo({ memo, text }: Parameters): Hex | undefined {
  if (memo !== undefined && text !== undefined) throw invalid("it has two memos", "do not pay; ask for another link");
  if (memo === undefined) return text === undefined ? undefined : encodeMemo(text);
  if (!isHex(memo, 32)) throw invalid("its memo is not 0x and 64 digits", "copy it again");
  return memo.toLowerCase() as Hex;
}

function number(what: string, text: string, max: bigint): bigint {
  const value = /^[0-9]{1,39}$/.test(text) ? BigInt(text) : undefined;
  if (value === undefined || value > max) throw invalid(`its ${what} is not a number in range`, "copy it again");
  return value;
}

function address(what: string, text: string): Address {
  const digits = text.slice(2);
  const isSingleCase = digits === digits.toLowerCase() || digits === digits.toUpperCase();
  if (!isHex(text, 20) || (!isSingleCase && checksumAddress(text) !== text)) {
    throw invalid(`its ${what} is not an address, or is mistyped`, "copy it again completely");
  }
  return text.toLowerCase() as Address;
}

function invalid(why: string, action: string, cause?: unknown): FastPayError {
  return new FastPayError("invalid-link", `this payment link cannot be used: ${why}`, action, { cause });
}
