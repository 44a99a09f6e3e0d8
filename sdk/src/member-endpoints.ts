/**
 * Where members of the committee can be reached, as each of them says itself. With it a client finds members that its
 * list of addresses lacks. A false address costs availability alone: every answer is verified.
 */

import { isHex, type Hex } from "./bytes.js";
import { memberOf, type AuthorityName, type Committee } from "./committee.js";
import { hex, list, object, optional, text, unsigned, type Decoder } from "./decode.js";
import { memberEndpointDigest } from "./eip712.js";
import { isEd25519Signature } from "./signatures.js";
import type { Domain } from "./transfer.js";

/** The most bytes of all texts of an endpoint. */
const TEXT_BYTES_MAX = 3_072;
const SHARDS_MAX = 256;
/** Those of two of the largest committees. */
const ENDPOINTS_MAX = 510;

/** What a member says of where it can be reached, and its signature, not checked. */
export interface MemberEndpoint {
  readonly authority: AuthorityName;
  /** Of two endpoints of a member, the one with the higher number counts. */
  readonly number: bigint;
  /** The gRPC addresses of its shards. */
  readonly shards: readonly string[];
  /** The base of its HTTP API, if it serves one. */
  readonly http: string | undefined;
  /** The certificate authority (PEM) of its shards' TLS certificate, if it has one. */
  readonly tlsCa: string | undefined;
  /** By the member's Ed25519 key. */
  readonly signature: Hex;
}

const endpoint: Decoder<MemberEndpoint> = object({
  authority: hex(32),
  number: unsigned(64),
  shards: list(text, SHARDS_MAX),
  http: optional(text),
  tlsCa: optional(text),
  signature: hex(64),
});

/** An authority's answer with members' endpoints. */
export const decodeEndpoints = object({ endpoints: list(endpoint, ENDPOINTS_MAX) });

/** One endpoint, as `encodeEndpoint` writes it. */
export const decodeEndpoint = endpoint;

/** The text of an endpoint. */
export function encodeEndpoint({ number, ...rest }: MemberEndpoint): string {
  return JSON.stringify({ ...rest, number: number.toString() });
}

/** Whether a member of one of these committees signed the endpoint, and its form is right. Never throws. */
export function isMemberEndpoint(domain: Domain, of: MemberEndpoint, committees: readonly Committee[]): boolean {
  const { authority, shards, http, tlsCa, signature } = of;
  if (!committees.some((committee) => memberOf(committee, authority) !== undefined)) return false;
  if (shards.length === 0 || shards.length > SHARDS_MAX || http === "" || tlsCa === "") return false;
  if (![...shards, ...(http === undefined ? [] : [http])].every((address) => /^https?:\/\//.test(address))) return false;
  const bytes = new TextEncoder().encode([...shards, http ?? "", tlsCa ?? ""].join("")).length;
  return bytes <= TEXT_BYTES_MAX && isHex(signature, 64) && isEd25519Signature(signature, memberEndpointDigest(domain, of), authority);
}
