/**
 * A thief with the redemption keys of a quorum, who redeems without the owner's signature: the contract does not check
 * it.
 */

import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { encodeFunctionData } from "viem";
import { privateKeyToAccount, sign } from "viem/accounts";

import { makeCommittee, redemptionVoteDigest, type Authority, type Domain, type Hex, type Redemption } from "../../src/index.js";
import { packVotes } from "../../src/certificate.js";
import { FASTPAY_ABI } from "../../src/chain/abi.js";

/** A redemption whose sender is plain hexadecimal, for callers that only have the built package's types. */
type Stolen = Omit<Redemption, "sender"> & { readonly sender: Hex };

/**
 * The call that redeems with the keys of the first three authorities in epoch 0; `file` is the network.json of their
 * network.
 */
export async function theft(file: string, domain: Domain, members: readonly Authority[], of: Stolen): Promise<Hex> {
  const redemption = of as Redemption;
  const committee = makeCommittee(0n, members);
  const hash = redemptionVoteDigest(domain, committee.epoch, redemption);
  const votes = [0, 1, 2].map(async (number) => {
    const key = readFileSync(`${dirname(file)}/authority-${number}/keys/redemption.key`, "utf8");
    const privateKey: Hex = `0x${key.trim()}`;
    const address = privateKeyToAccount(privateKey).address.toLowerCase();
    const member = committee.members.find(({ redemptionKey }) => redemptionKey.toLowerCase() === address);
    return { authority: member?.votingKey as Hex, signature: await sign({ hash, privateKey, to: "hex" }) };
  });
  const sorted = (await Promise.all(votes)).sort((a, b) => (a.authority < b.authority ? -1 : 1));
  const args = [redemption, committee.epoch, packVotes(committee, sorted)] as const;
  return encodeFunctionData({ abi: FASTPAY_ABI, functionName: "redeem", args });
}
