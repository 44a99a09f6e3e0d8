/** Keys of authorities and of people, and their signatures. */

import { ed25519 } from "@noble/curves/ed25519.js";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { blake3 } from "@noble/hashes/blake3.js";
import { keccak_256 } from "@noble/hashes/sha3.js";

import {
  certificateVoteDigest,
  checkpointDigest,
  ed25519Signer,
  ETHER,
  makeCommittee,
  memberEndpointDigest,
  NO_MEMO,
  paymentVoteDigest,
  redemptionBatchVoteDigest,
  redemptionVoteDigest,
  signOrder,
  transferDigest,
  voidVoteDigest,
  type AccountId,
  type BatchVote,
  type Checkpoint,
  type CheckpointVote,
  type Committee,
  type Domain,
  type Hex,
  type Payment,
  type Redemption,
  type Signer,
  type Transfer,
  type VerifiedOrder,
  type Vote,
} from "../../src/index.js";
import { concat, toBytes, toHex } from "../../src/bytes.js";

export const DOMAIN: Domain = { chainId: 31_337n, contract: "0xfafafafafafafafafafafafafafafafafafafafa" };

function secret(seed: string): Uint8Array {
  return keccak_256(new TextEncoder().encode(seed));
}

/** One authority's keys. */
export class Keys {
  readonly #voting: Uint8Array;
  readonly #redemption: Uint8Array;
  readonly votingKey: Hex;
  readonly redemptionKey: Hex;
  readonly domain: Domain;

  constructor(seed: string, domain = DOMAIN) {
    this.domain = domain;
    this.#voting = secret(`voting ${seed}`);
    this.#redemption = secret(`redemption ${seed}`);
    this.votingKey = toHex(ed25519.getPublicKey(this.#voting));
    const key = secp256k1.getPublicKey(this.#redemption, false);
    this.redemptionKey = toHex(keccak_256(key.subarray(1)).subarray(12));
  }

  vote(epoch: bigint, transfer: Transfer): Vote {
    const authority = this.votingKey;
    if (transfer.type !== "redemption") {
      const root = toHex(blake3(concat(Uint8Array.of(0), toBytes(transferDigest(this.domain, transfer)))));
      const signature = toHex(ed25519.sign(toBytes(paymentVoteDigest(this.domain, epoch, root)), this.#voting));
      return { type: "payment", authority, signature, directions: 0, siblings: [] };
    }
    return { type: "redemption", authority, signature: this.#sign(redemptionVoteDigest(this.domain, epoch, transfer)) };
  }

  batchVote(epoch: bigint, redemptions: readonly Redemption[]): BatchVote {
    const signature = this.#sign(redemptionBatchVoteDigest(this.domain, epoch, redemptions));
    return { authority: this.votingKey, signature };
  }

  certificateVote(epoch: bigint, account: AccountId, sequence: bigint, digest: Hex): BatchVote {
    return { authority: this.votingKey, signature: this.#sign(certificateVoteDigest(this.domain, epoch, account, sequence, digest)) };
  }

  voidVote(epoch: bigint, account: AccountId, sequence: bigint, unanimous: boolean): BatchVote {
    return { authority: this.votingKey, signature: this.#sign(voidVoteDigest(this.domain, epoch, account, sequence, unanimous)) };
  }

  checkpointVote(checkpoint: Checkpoint): CheckpointVote {
    const signature = toHex(ed25519.sign(toBytes(checkpointDigest(this.domain, checkpoint)), this.#voting));
    return { authority: this.votingKey, signature };
  }

  /** What the member says of where it is, in the form of the HTTP API. */
  endpoint(number: bigint, http: string): { authority: Hex; number: string; shards: string[]; http: string; signature: Hex } {
    const shards = ["http://127.0.0.1:1"];
    const digest = memberEndpointDigest(this.domain, { number, shards, http, tlsCa: undefined });
    const signature = toHex(ed25519.sign(toBytes(digest), this.#voting));
    return { authority: this.votingKey, number: number.toString(), shards, http, signature };
  }

  #sign(digest: Hex): Hex {
    const recovered = secp256k1.sign(toBytes(digest), this.#redemption, { prehash: false, format: "recovered" });
    return toHex(concat(recovered.subarray(1), Uint8Array.of(27 + (recovered[0] ?? 0))));
  }
}

/** The keys of `count` authorities, in the order of their names. */
export function authorities(count: number, seed = "epoch 0", domain = DOMAIN): Keys[] {
  const keys = Array.from({ length: count }, (_, number) => new Keys(`${seed} ${number}`, domain));
  return keys.sort((a, b) => (a.votingKey < b.votingKey ? -1 : 1));
}

export function committeeOfKeys(keys: readonly Keys[], epoch = 0n): Committee {
  return makeCommittee(epoch, keys);
}

/** A person with an Ed25519 key. */
export function person(name: string): Signer {
  return ed25519Signer(secret(name));
}

export function paymentOf(sender: AccountId, recipient: AccountId, amount: bigint, sequence: bigint): Payment {
  return { type: "payment", sender, recipient, asset: ETHER, amount, sequence, memo: NO_MEMO };
}

export function signed(signer: Signer, transfer: Transfer): Promise<VerifiedOrder> {
  return signOrder(signer, DOMAIN, transfer);
}
