/** The page's deployment: /network.json, beside the page. One build serves any deployment; the host chooses it. */

import { accountFromEthereum, FastPayError, ZERO_ACCOUNT, type Address, type AuthorityEndpoint } from "@fastpay/sdk";
import type { LedgerDescription } from "@fastpay/sdk/ledger";
import { isAddress } from "viem";

import { fileAhead } from "./ahead";

/** A deployment and its endpoints. */
export interface NetworkConfig {
  /** 0 on a ledger. */
  readonly chainId: number;
  /** The page's Ethereum nodes; none on a ledger. If one does not answer, the page asks the next. */
  readonly rpc: readonly string[];
  /** On a ledger, the address of the committee's domain, which no contract has. */
  readonly contract: Address;
  /** The ledger on which the deployment is, in place of a contract. */
  readonly ledger: LedgerDescription | undefined;
  /** Where accounts are funded and redemptions are paid, in sentences. */
  readonly primaryName: "Ethereum" | "the ledger";
  /** What names the committee and holds the accounts' money, in sentences. */
  readonly holder: "the contract" | "the ledger";
  /** Tokens that are shown from the start, besides ETH. */
  readonly tokens: readonly Address[];
  readonly authorities: readonly AuthorityEndpoint[];
  /** Labels of authorities, by their base URLs. */
  readonly labels: ReadonlyMap<string, string>;
  /** Base URLs of relayers. */
  readonly relayers: readonly string[];
  /** The host's project at WalletConnect. Without one, the page offers no wallets on other devices. */
  readonly walletConnectProjectId: string | undefined;
  /** The chain's name. */
  readonly chainName: string;
}

/** The maximum length of a label: a longer one does not fit beside an answer. */
const LABEL_LENGTH_MAX = 40;

/** Names of well-known chains. */
const CHAIN_NAMES: Readonly<Record<number, string>> = {
  0: "Ledger",
  1: "Ethereum",
  10: "OP Mainnet",
  8453: "Base",
  31337: "Localnet",
  42161: "Arbitrum One",
  11155111: "Sepolia",
};

/** Loads and checks the file. Throws a `FastPayError`. */
export async function loadConfig(signal?: AbortSignal): Promise<NetworkConfig> {
  let file: unknown;
  try {
    file = await (fileAhead() ?? loadFile(signal));
  } catch (cause) {
    throw unusable("it cannot be loaded", cause);
  }
  return readConfig(file);
}

async function loadFile(signal: AbortSignal | undefined): Promise<unknown> {
  const answer = await fetch("/network.json", { cache: "no-cache", ...(signal === undefined ? {} : { signal }) });
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return answer.json();
}

/** Validates the file. Throws a `FastPayError`. */
export function readConfig(file: unknown): NetworkConfig {
  if (!isRecord(file)) throw unusable("it is not an object");
  const { authorities, relayers = [] } = file;
  const primary = file.ledger === undefined ? readChain(file) : readLedger(file);
  if (!Array.isArray(authorities) || authorities.length === 0) throw unusable("authorities must be a list of at least one");
  if (!Array.isArray(relayers) || !relayers.every((url) => typeof url === "string" && isHttp(url))) {
    throw unusable("relayers is not a list of http addresses");
  }
  return {
    ...primary,
    tokens: readTokens(file.tokens ?? (file.token === undefined ? [] : [file.token])),
    authorities: authorities.map(readAuthority),
    labels: new Map(authorities.flatMap(readLabel)),
    relayers,
    walletConnectProjectId: readProjectId(file.walletConnectProjectId),
    chainName: chainName(primary.chainId),
  };
}

type PrimaryConfig = Pick<NetworkConfig, "chainId" | "rpc" | "contract" | "ledger" | "primaryName" | "holder">;

function readChain({ chainId, rpc, contract }: Record<string, unknown>): PrimaryConfig {
  if (typeof chainId !== "number" || !Number.isSafeInteger(chainId) || chainId <= 0) throw unusable("chainId must be a positive integer");
  const nodes: unknown[] = Array.isArray(rpc) ? rpc : [rpc];
  const areNodes = nodes.length > 0 && nodes.every((url): url is string => typeof url === "string" && isHttp(url));
  if (!areNodes) throw unusable("rpc is neither an http address nor a list of them");
  if (!isContract(contract)) throw unusable("contract is not an address");
  return { chainId, rpc: nodes as string[], contract: lower(contract), ledger: undefined, primaryName: "Ethereum", holder: "the contract" };
}

/** The SDK checks the rest of the description, for which it needs code that other pages do not load. */
function readLedger({ ledger, chainId, rpc, contract, walletConnectProjectId }: Record<string, unknown>): PrimaryConfig {
  const others = [chainId, rpc, contract, walletConnectProjectId];
  if (others.some((other) => other !== undefined)) throw unusable("a ledger has no chain, node or contract on Ethereum, and no WalletConnect");
  if (!isRecord(ledger) || !isContract(ledger.contract)) throw unusable("ledger is not what `fastpay-ledger describe` prints");
  const description = ledger as unknown as LedgerDescription;
  return { chainId: 0, rpc: [], contract: lower(ledger.contract), ledger: description, primaryName: "the ledger", holder: "the ledger" };
}

/** What the number of a deployment's events is called. */
export function eventsLabel({ ledger }: Pick<NetworkConfig, "ledger">): string {
  return ledger === undefined ? "Events of the contract so far" : "Events of the committee so far";
}

/** A chain's name. */
export function chainName(chainId: number): string {
  return CHAIN_NAMES[chainId] ?? `chain ${chainId}`;
}

function readTokens(tokens: unknown): Address[] {
  if (!Array.isArray(tokens)) throw unusable("tokens is not a list");
  return tokens.map((token: unknown) => {
    if (!isContract(token)) throw unusable("a token is not an address");
    return lower(token);
  });
}

function readAuthority(entry: unknown): AuthorityEndpoint {
  if (!isRecord(entry) || typeof entry.http !== "string" || !isHttp(entry.http)) {
    throw unusable("an authority has no http address");
  }
  const http = entry.http.replace(/\/+$/, "");
  if (entry.name === undefined) return { http };
  if (typeof entry.name !== "string" || !/^0x[0-9a-f]{64}$/i.test(entry.name)) throw unusable("an authority's name");
  return { http, name: lower(entry.name as Address) };
}

function readLabel(entry: unknown): [string, string][] {
  if (!isRecord(entry) || entry.label === undefined) return [];
  const { http, label } = entry;
  const isLabel = typeof label === "string" && label.trim() !== "" && label.length <= LABEL_LENGTH_MAX;
  if (!isLabel) throw unusable(`an authority's label must have 1 to ${LABEL_LENGTH_MAX} characters`);
  return [[String(http).replace(/\/+$/, ""), label.trim()]];
}

function readProjectId(id: unknown): string | undefined {
  if (id === undefined || (typeof id === "string" && /^[0-9a-f]{32}$/.test(id))) return id;
  throw unusable("walletConnectProjectId is not 32 hexadecimal digits");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isHttp(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function isContract(value: unknown): value is Address {
  return typeof value === "string" && isAddress(value) && accountFromEthereum(value) !== ZERO_ACCOUNT;
}

function lower(hex: Address): Address {
  return hex.toLowerCase() as Address;
}

function unusable(why: string, cause?: unknown): FastPayError {
  const action = "the host of this page must correct it (docs/WEB.md)";
  return new FastPayError("invalid-argument", `network.json is invalid: ${why}`, action, { cause });
}
