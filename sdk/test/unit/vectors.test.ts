/** The SDK hashes and judges as Rust and Solidity do, on every vector. */

import { describe, expect, test } from "vitest";

import {
  accountFromBytes32,
  accountFromEd25519,
  accountFromEthereum,
  certificateVoteDigest,
  checkTransfer,
  encodeOrder,
  formatAccount,
  inspectCertificate,
  merkleRoot,
  outputHash,
  packRedemptionVotes,
  parseAccount,
  paymentVoteDigest,
  payoutDigest,
  recoverSigner,
  redemptionBatchVoteDigest,
  redemptionVoteDigest,
  transferDigest,
  unlockRequestDigest,
  verifyCertificate,
  verifyOrder,
  voidVoteDigest,
  voteFault,
  type Certificate,
  type Committee,
  type Hex,
} from "../../src/index.js";
import { decodeOrder } from "../../src/wire.js";
import {
  authorizationOf,
  committeeOf,
  domainOf,
  outputOf,
  payments,
  payouts,
  redemptionOf,
  redemptions,
  transferOf,
  voteOf,
} from "../support/vectors.js";

const domain = domainOf(payments.domain);
const parseOrder = (json: string) => decodeOrder(JSON.parse(json), "the order");
const committee = committeeOf(payments);

function stands(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

test.each(payments.identities)("account $text", ({ publicKey, address, account, text }) => {
  const id = publicKey === null ? accountFromEthereum(address as Hex) : accountFromEd25519(publicKey);
  expect(id).toBe(account);
  expect(formatAccount(id)).toBe(text);
  expect(parseAccount(text)).toBe(id);
  expect(accountFromBytes32(account)).toBe(id);
});

test.each(payments.notIdentities)("not an account: $name", ({ text }) => {
  expect(() => parseAccount(text)).toThrow(expect.objectContaining({ code: "invalid-account" }));
});

describe("orders", () => {
  test.each([...payments.orders, ...payments.zip215])("$name", ({ transfer, digest, authorization, valid }) => {
    const order = { transfer: transferOf(transfer), authorization: authorizationOf(authorization) };
    expect(transferDigest(domain, order.transfer)).toBe(digest);
    expect(stands(() => verifyOrder(order, domain))).toBe(valid);
  });
});

describe("votes", () => {
  test.each(payments.votes)("$name", ({ transfer, vote, root, voteDigest, valid }) => {
    const of = transferOf(transfer);
    const digest = transferDigest(domain, of);
    const cast = voteOf(vote);
    if (root && cast.type === "payment") {
      expect(merkleRoot(digest, cast)).toBe(root);
      expect(paymentVoteDigest(domain, committee.epoch, root)).toBe(voteDigest);
    }
    expect(voteFault(cast, committee, domain, { transfer: of, digest }) === undefined).toBe(valid);
  });
});

describe("certificates", () => {
  test.each(payments.certificates)("$name", ({ transfer, authorization, epoch, votes, valid }) => {
    const certificate: Certificate = {
      order: { transfer: transferOf(transfer), authorization: authorizationOf(authorization) },
      epoch: BigInt(epoch),
      votes: votes.map(voteOf),
    };
    expect(stands(() => verifyCertificate(certificate, committee, domain))).toBe(valid);
    expect(inspectCertificate(certificate, committee, domain).isValid).toBe(valid);
  });
});

describe("payouts", () => {
  test.each(payouts.orders)("$name", ({ transfer, digest, authorization, outputHashes, valid }) => {
    const order = { transfer: transferOf(transfer), authorization: authorizationOf(authorization) };
    if (order.transfer.type !== "payout") throw new Error("it is no payout");
    expect(transferDigest(domain, order.transfer)).toBe(digest);
    expect(order.transfer.outputs.map(outputHash)).toEqual(outputHashes);
    expect(payoutDigest(domain, order.transfer, outputHashes)).toBe(digest);
    expect(stands(() => verifyOrder(order, domain))).toBe(valid);
    expect(parseOrder(encodeOrder(order))).toEqual(order);
  });

  test.each(payouts.certificates)("certificate: $name", ({ transfer, authorization, epoch, votes, valid }) => {
    const order = { transfer: transferOf(transfer), authorization: authorizationOf(authorization) };
    const certificate: Certificate = { order, epoch: BigInt(epoch), votes: votes.map(voteOf) };
    expect(stands(() => verifyCertificate(certificate, committee, domain))).toBe(valid);
    expect(inspectCertificate(certificate, committee, domain).isValid).toBe(valid);
  });

  test.each(payouts.notOutputs)("not outputs: $name", ({ outputs }) => {
    const [some] = payouts.orders;
    const transfer = some && transferOf(some.transfer);
    if (transfer?.type !== "payout") throw new Error("there is no payout");
    const check = (): void => checkTransfer({ ...transfer, outputs: outputs.map(outputOf) }, domain);
    expect(check).toThrow(expect.objectContaining({ code: "invalid-transfer" }));
  });
});

/** The contract's own check of packed votes, so that its vectors can be judged here. */
function packedVotesStand(packed: Hex, of: Committee, digest: Hex): boolean {
  if ((packed.length - 2) / 2 !== 66 * of.quorum) return false;
  let last = -1;
  for (let at = 2; at < packed.length; at += 132) {
    const index = Number.parseInt(packed.slice(at, at + 2), 16);
    const signer = recoverSigner(`0x${packed.slice(at + 2, at + 132)}`, digest);
    if (index <= last || signer === undefined || signer !== of.members[index]?.redemptionKey) return false;
    last = index;
  }
  return true;
}

test("statements about a number to unlock", () => {
  const { account, sequence, epoch, orderDigest, ...digests } = redemptions.statements;
  const [domain, id, number, term] = [domainOf(redemptions.domain), accountFromBytes32(account), BigInt(sequence), BigInt(epoch)];
  expect(unlockRequestDigest(domain, id, number)).toBe(digests.unlockRequestDigest);
  expect(certificateVoteDigest(domain, term, id, number, orderDigest)).toBe(digests.certificateVoteDigest);
  expect(voidVoteDigest(domain, term, id, number, false)).toBe(digests.voidVoteDigest);
  expect(voidVoteDigest(domain, term, id, number, true)).toBe(digests.unanimousVoidVoteDigest);
});

describe("redemptions", () => {
  const epochs = (epoch: string): Committee | undefined =>
    BigInt(epoch) === BigInt(redemptions.epoch) ? committeeOf(redemptions) : undefined;

  test.each(redemptions.cases)("$name", ({ redemption, epoch, orderDigest, voteDigest, votes, valid }) => {
    const of = redemptionOf(redemption);
    expect(transferDigest(domain, of)).toBe(orderDigest);
    expect(redemptionVoteDigest(domain, BigInt(epoch), of)).toBe(voteDigest);
    const voters = epochs(epoch);
    const isOrder = of.amount > 0n && of.fee <= of.amount;
    expect(voters !== undefined && isOrder && packedVotesStand(votes, voters, voteDigest)).toBe(valid);
  });

  test.each(redemptions.batches)("$name", ({ redemptions: items, epoch, voteDigest, votes, valid }) => {
    expect(redemptionBatchVoteDigest(domain, BigInt(epoch), items.map(redemptionOf))).toBe(voteDigest);
    const voters = epochs(epoch);
    const isBatch = voters !== undefined && items.length > 0 && packedVotesStand(votes, voters, voteDigest);
    expect(isBatch).toBe(valid);
  });

  test("a certificate's votes are packed as the contract reads them", () => {
    const vector = payments.certificates.find((certificate) => certificate.name === "a redemption");
    if (vector === undefined) throw new Error("the vector is gone");
    const transfer = transferOf(vector.transfer);
    const order = { transfer, authorization: authorizationOf(vector.authorization) };
    const certificate = { order, epoch: BigInt(vector.epoch), votes: vector.votes.map(voteOf) };
    const packed = packRedemptionVotes(verifyCertificate(certificate, committee, domain), committee);
    if (transfer.type !== "redemption") throw new Error("it is a payment");
    expect(packedVotesStand(packed, committee, redemptionVoteDigest(domain, 0n, transfer))).toBe(true);
  });
});
